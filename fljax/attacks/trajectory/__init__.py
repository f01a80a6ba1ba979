"""Trajectory matching: a client's path is simulated until it meets its messages.

`Inference.misfit` tells whether the messages are those of a client with these rows, this
model and this training: it is about 1 then, or less, and grows with what is not so. Up to
`FITS` estimates may be believed, above `MISFITS` they may not.

* `clients` is the registered attack, of all clients, `effort` how hard it looks; `attack`
  that of one client, `sums` of those behind sums, where `associations` begins;
* the client that is `imagined`, and `message_facts`: the `rules` of its steps, `fields` of clipped gradients,
  `simulation` of a round, what its optimiser has `kept`, `merging` of its steps or the
  `quotients` of Adam's, `fallbacks` of rounds that run away, its `messages`, noise that is
  `added`;
* the search: `relaxation` of rows, `matching` of end points, `noise` and `rounding` of
  what is left, `exact` where there is none, `misfits`, and the `posterior`.
"""

from fljax.attacks.trajectory.attack import Inference, trajectory_matching
from fljax.attacks.trajectory.matching import Settings

FITS, MISFITS = 3.0, 10.0

__all__ = ["FITS", "MISFITS", "Inference", "Settings", "trajectory_matching"]
