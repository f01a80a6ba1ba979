"""`trajectory` and `linear_inversion`: trajectory matching, and its first order."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks import streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.each_client import Client, Task, over_clients, over_items, task
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.attacks.trajectory import attack as one_client
from fljax.attacks.trajectory import matching
from fljax.attacks.trajectory.attack import Inference
from fljax.transcript import views

_DEFAULT = matching.Settings()


class Settings(NamedTuple):
    """How hard to look.

    Attributes:
      epoch_steps: simulated steps of a local epoch.
      messages: of each client, evenly from its first to its last; None for all.
      search: everything else; its `path_steps` and `first_order` are set here.
    """

    epoch_steps: int = 16
    messages: int | None = None
    search: matching.Settings = _DEFAULT


class _Static(NamedTuple):
    messages: int | None
    search: matching.Settings


def infer(
    view: AdversaryView,
    settings: Settings,
    *,
    first_order: bool = False,
    scales: np.ndarray | None = None,
) -> Inference:
    """What the attack believes of every client.

    Args:
      view: what the adversary has.
      settings: how hard to look.
      first_order: linear inversion.
      scales: `[C]` learning rate times local steps of each client; None takes those of
        `view.training`.

    Returns:
      Leaves `[C, ...]`; zeros for a client without a message.
    """
    training, sizes = view.training, view.sizes
    steps = training.local_steps(sizes)
    most = settings.epoch_steps * (training.epochs or 1)
    search = settings.search._replace(
        path_steps=min(int(steps.max()), most), first_order=first_order
    )
    if scales is None:
        scales = (training.learning_rate or 0.0) * steps
    scales = np.asarray(scales, np.float32)
    static = task(view, _Static(settings.messages, search))
    if settings.messages is None:
        return over_clients(_one, static, view, scales)
    return over_items(_one, static, view, np.arange(len(sizes)), scales)


def run(view: AdversaryView, settings: Settings) -> Estimates:
    """Trajectory matching; `details["inference"]` is what it believes.

    `details["probability"]` `[C, n, K]` is the posterior of a category.
    """
    return {"trajectory": _prediction(view, settings, first_order=False)}


def run_first_order(view: AdversaryView, settings: Settings) -> Estimates:
    """Linear inversion; details as those of `run`."""
    return {"linear_inversion": _prediction(view, settings, first_order=True)}


def _prediction(view: AdversaryView, settings: Settings, *, first_order: bool):
    found = infer(view, settings, first_order=first_order)
    value = found.value[..., 0] if view.continuous else found.index
    details: dict[str, Any] = {"inference": found}
    if not view.continuous:
        details["probability"] = found.probability
    return Prediction(value, {"misfit": found.misfit}, details)


def _one(static: Task, client: Client, scale: jax.Array) -> Inference:
    settings = static.settings
    exchange = client.exchange
    if settings.messages is not None:
        which = views.spread(_numbered(client.places), settings.messages).row
        exchange = jax.tree.map(lambda leaf: leaf[which], exchange)
    return views.if_messages(
        client.places,
        lambda: one_client.trajectory_matching(
            streams.key(client.seed, streams.TRAJECTORY, client.id),
            static.loss_fn,
            exchange,
            client.known,
            client.candidates,
            scale=scale,
            continuous=static.continuous,
            settings=settings.search,
        ),
    )


def _numbered(places: views.ClientView) -> views.ClientView:
    """The same with numbers of the client's own messages as rounds."""
    return places._replace(row=jnp.arange(places.row.shape[0]))


NEEDS = Needs(training=True, optimisers=("sgd",), algorithms_not=("fed_prox",))
SPEC = AttackSpec("trajectory", NEEDS, run, Settings())
FIRST_ORDER = AttackSpec("linear_inversion", NEEDS, run_first_order, Settings())
