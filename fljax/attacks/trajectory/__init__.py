"""Trajectory matching: a client's path is simulated until it meets its messages."""

from fljax.attacks.trajectory.attack import Inference, trajectory_matching
from fljax.attacks.trajectory.matching import Settings

__all__ = ["Inference", "Settings", "trajectory_matching"]
