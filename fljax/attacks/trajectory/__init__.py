"""Trajectory matching: a client's path is simulated until it meets its messages.

`Inference.misfit` tells whether the messages are those of a client with these rows, this
model and this training: it is about 1 then, and grows with what is not so. Up to `FITS`
estimates may be believed; above `MISFITS` they may not, whatever they say; between the
two only where the attack predicts the messages much better than no change does.
"""

from fljax.attacks.trajectory.attack import Inference, trajectory_matching
from fljax.attacks.trajectory.matching import Settings

FITS, MISFITS = 3.0, 10.0

__all__ = ["FITS", "MISFITS", "Inference", "Settings", "trajectory_matching"]
