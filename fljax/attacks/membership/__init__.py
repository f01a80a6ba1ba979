"""Membership inference: which of a pool of rows a client trained on.

The adversary is passive. It is given what it sees, and candidate rows; whether they were
there is scored elsewhere.

* `gradients`: likelihood ratios from messages, sums or models of several rounds, without
  any shadow training;
* `losses`: from the losses of one model: a threshold, and two attacks that also have
  shadow trainings of their own (LiRA, RMIA).
"""

from fljax.attacks.membership.gradients import Ratios, Sums, likelihood_ratios
from fljax.attacks.membership.losses import Shadows, lira, rmia, threshold

__all__ = [
    "Ratios",
    "Shadows",
    "Sums",
    "likelihood_ratios",
    "lira",
    "rmia",
    "threshold",
]
