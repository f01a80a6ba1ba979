"""Attribute inference: what one client's messages tell of a column of its rows.

* `inference`: eq. (3) of Diana et al. (AAAI-25), with any model of the client's.
* `last_model`: the same with the last model that a client returned.
* `gradient`: eq. (2), on the messages themselves; `gradient_grid` tries settings of it.
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
