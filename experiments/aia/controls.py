"""Attacks once more on rows that their messages do not tell of.

* `NAME_strangers`: with the same messages on rows that never met them;
* `NAME_permuted`: on the client's rows with their targets in random order.

What an attack names rightly there it does not owe to the messages.
"""

from collections.abc import Callable, Sequence

import numpy as np

from experiments.aia.adversary import Adversary, Attacked, each_seed, of_seeds
from fljax import attack_names
from fljax.attacks import controls
from fljax.attacks.attribute import last_model
from fljax.attacks.estimates import Prediction
from fljax.types import Known

_KEPT = ("misfit",)  # of what an attack says of itself


def of_strangers(adversary: Adversary, known: Known) -> Adversary:
    """The same with strangers `[seeds, C, n, ...]` in the place of clients' rows."""
    views = [
        controls.strangers(view, rows)
        for view, rows in zip(adversary.views, of_seeds(known), strict=True)
    ]
    return adversary._replace(views=views)


def permuted(adversary: Adversary) -> Adversary:
    """The same with every client's targets in random order."""
    return adversary._replace(
        views=[controls.permuted(view) for view in adversary.views]
    )


def repeated(
    name: str,
    found: Sequence[Attacked],
    again: Callable[[Adversary], list[Attacked]],
    adversary: Adversary,
) -> list[Attacked]:
    """What an attack says of other rows: its values and how well they fit.

    Args:
      name: of the control, which ends the names of the attacks.
      found: what it said of the clients' own.
      again: runs it; attacks that found a model are repeated by equation 3 alone.
      adversary: of the other rows.
    """
    judged = [each for each in found if _is_judged(each)]
    if not judged:
        return []
    if all("params" in each.prediction.details for each in judged):
        made = [_with_models(each, adversary) for each in judged]
    else:
        made = [each for each in again(adversary) if _is_judged(each)]
    return [_renamed(each, f"{each.name}_{name}") for each in made]


def _is_judged(each: Attacked) -> bool:
    said = each.prediction
    return said.value is not None and attack_names.is_judged(each.name, said.setting)


def _with_models(each: Attacked, adversary: Adversary) -> Attacked:
    prediction = each.prediction
    models = of_seeds(prediction.details["params"])
    title = f"{each.name}, other rows, seeds"
    value = each_seed(adversary, title, last_model.with_models, models)
    return each._replace(prediction=prediction._replace(value=np.stack(value)))


def _renamed(each: Attacked, name: str) -> Attacked:
    value, said, _, setting = each.prediction
    kept = {key: said[key] for key in _KEPT if key in said}
    return Attacked(name, Prediction(value, kept, {}, setting), each.clients)
