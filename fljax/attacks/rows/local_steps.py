"""Whole rows from one message of local steps, by the attack that fits them."""

import numpy as np

from fljax.attacks.rows import epoch, recovery, repeated
from fljax.attacks.rows.recovery import Found
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.search import Effort
from fljax.attacks.rows.steps import Steps
from fljax.losses import LossFn
from fljax.types import Params


def recover_steps(
    params: Params,
    message: Params,
    loss_fn: LossFn,
    steps: Steps,
    schema: Schema,
    rows: int,
    targets: np.ndarray,
    *,
    seed: int = 0,
    effort: Effort = recovery.EFFORT,
) -> Found:
    """Rows behind what came back of local steps: `recovery`, `epoch` or `repeated`.

    Args:
      params: that were sent, of a model with a first `TabularDense` layer.
      message: the way moved, over count and rate of the steps (`steps.moved`): of one
        step its mean gradient.
      loss_fn: of one example.
      steps: that the client has taken.
      schema: how the table is encoded.
      rows: of all steps.
      targets: `[t]` what a row's target may be: all classes, or those of the rows.
      seed: of what the search draws.
      effort: how hard to look.

    Returns:
      What was found, all, some or none of the rows, and whether it is certain.

    Raises:
      ValueError: another model, no rows or targets, steps that are not over so many
        rows, or numbers that are not finite.
    """
    sent, about = (params, message, loss_fn), (schema, rows, targets)
    if steps.count == 1 and steps.rows in (0, rows):
        return recovery.recover(*sent, *about, seed=seed, effort=effort)
    if steps.rows:
        return epoch.recover(*sent, steps, *about, seed=seed, effort=effort)
    return repeated.recover(*sent, steps, *about, effort=effort)
