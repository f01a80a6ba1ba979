"""The defense that clients say they train with, and what its budget amounts to.

A budget (`epsilon` in a defense's text) stands for the sigma that keeps it over all rounds
of the training, which a delta and the clients' schedule tell. An adversary knows them as
well as anybody, so that the clients that it imagines have that noise. Batches are taken to
be the Poisson samples that a defense asks for, and disjoint where it asks for none.
"""

from typing import Any, NamedTuple

import numpy as np

from fljax import privacy
from fljax.attacks.adversary import AdversaryView
from fljax.defenses import clipping, specs
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Spec
from fljax.privacy import Releases
from fljax.types import Sampling


class Declared(NamedTuple):
    """A promise of clients.

    Attributes:
      spec: of the defense, without alternatives; None where none is known.
      delta: of the budgets in it; None where nobody says.
    """

    spec: Spec | None
    delta: float | None

    @property
    def has_budget(self) -> bool:
        """Whether noise is left to an epsilon."""
        return self.spec is not None and self.spec.has_budget


def simulated(declared: Declared, view: AdversaryView) -> tuple[Spec | None, list[str]]:
    """The defense with a sigma in a budget's place, and what to say of it.

    Clients of other numbers of rows keep a budget by other noise; they are imagined with
    the mean.

    Args:
      declared: by the clients.
      view: what attacks have.
    """
    spec = declared.spec
    if spec is None or not declared.has_budget:
        return spec, []
    if why := unknown(declared, view):
        return spec, [f"The noise of {spec} is not simulated: {why}."]
    try:
        given = numbers(declared, view, _way(spec))
    except ValueError as error:
        return spec, [f"The noise of {spec} is not simulated: {error}."]
    changes, said = [], []
    for part, own in zip(spec.parts, given, strict=True):
        if not part.has_budget:
            changes.append({})
            continue
        sigma = np.asarray(own["sigma"])
        changes.append({"sigma": float(sigma.mean())})
        spread = ""
        if sigma.max() > 1.001 * sigma.min():
            spread = f", the mean over clients ({sigma.min():.3g} to {sigma.max():.3g})"
        said.append(
            f"{part} at delta {declared.delta:g} is simulated with a sigma of "
            f"{sigma.mean():.3g}{spread}."
        )
    return specs.replaced(spec, changes), said


def unknown(declared: Declared, view: AdversaryView) -> str:
    """Why it cannot be told how much noise there is, and how often; empty if it can."""
    training = view.training
    missing = [
        name for name in training.missing if name in ("batch_size", "local_epochs")
    ]
    if training.steps is not None and training.batch_size is None:
        missing = ["batch_size"]
    if missing:
        return f"nothing says {' and '.join(missing)}, so how often a row is used"
    if declared.has_budget and declared.delta is None:
        return "the noise of a budget depends on its delta; say --delta, or sigma"
    return ""


def numbers(declared: Declared, view: AdversaryView, way: Sampling) -> Any:
    """Numbers of the defense's parts, a sigma `[C]` or [] in the place of a budget.

    A budget is for all rounds of the training, whoever comes into them, as
    `privacy.Releases.of_tables` counts them.

    Raises:
      ValueError: a budget that no noise keeps.
    """
    assert declared.spec is not None
    if declared.delta is None:
        return specs.numbers(declared.spec)
    rounds = np.full(len(view.sizes), view.num_rounds)
    planned = Releases(rounds * view.training.local_steps(view.sizes), rounds)
    return privacy.numbers_for(
        declared.spec, setting(view, way), planned, declared.delta
    )


def releases(view: AdversaryView, left_out: np.ndarray) -> Releases:
    """How often each client's rows were in a noisy sum.

    Rounds that nobody recorded count as if a client had taken part in them, for they are
    in the models that were sent later.
    """
    assert view.transcript is not None and view.messages is not None
    recorded = np.asarray(view.transcript.round)
    took_part = np.asarray(view.messages.count) + left_out
    if view.sees != "messages":
        took_part = np.full(len(view.sizes), len(recorded))
    rounds = took_part + int(recorded[-1]) + 1 - len(recorded)
    return Releases(rounds * view.training.local_steps(view.sizes), rounds)


def setting(view: AdversaryView, way: Sampling) -> Setting:
    """Of the clients' training, by a way to make batches."""
    assert view.transcript is not None
    return Setting.of_clients(
        view.loss_fn,
        clipping.num_layers(view.transcript.params),
        view.sizes,
        view.training.batch_size or None,
        poisson=way == "poisson",
        drop_last=view.training.drop_last,
        num_rounds=view.num_rounds,
    )


def _way(spec: Spec) -> Sampling:
    return "poisson" if specs.needs_poisson(spec) else "fixed"
