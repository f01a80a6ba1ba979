"""Attribute inference: what one client's messages tell of a column of its rows.

* `inference`: eq. (3) of Diana et al. (AAAI-25), with any model of the client's.
* `gradient`: eq. (2), on the messages themselves.
* `active`: Algorithm 3, a server that sends forged models.
"""

from fljax.attacks.attribute.inference import (
    Guess,
    complete,
    conceal,
    least_squares_bound,
    model_based,
    model_based_continuous,
    row_losses,
    without_padding,
)

__all__ = [
    "Guess",
    "complete",
    "conceal",
    "least_squares_bound",
    "model_based",
    "model_based_continuous",
    "row_losses",
    "without_padding",
]
