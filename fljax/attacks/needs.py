"""What an attack needs, as data, and in one place the sentence that says what is missing."""

import dataclasses

import jax
import numpy as np

from fljax import losses
from fljax.attacks.adversary import AdversaryView
from fljax.transcript import sums
from fljax.transcript.views import View
from fljax.types import Array, Params

UNKNOWN_MEMBERS = (
    "needs to know who is in each sum, as record_sums tells it; global models do only if "
    "everybody takes part in every round and the server takes the mean"
)
SEEN: dict[View, str] = {
    "messages": "each client's own messages",
    "sum": "only sums of clients' messages",
    "models": "only the global models",
    "final": "only the last global model",
    "active": "messages of clients whose models it chooses",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Needs:
    """What must be so before an attack can be run; by default nothing.

    Attributes:
      views: what the adversary may see, some of `transcript.views.View`.
      members: where only sums are seen, it is known who is in each, and their rows.
      task: of the model, empty for any.
      linear: the model is known to be linear, and its loss the usual one of the task.
      categorical: the sensitive column is no number.
      training: how clients train is known.
      epochs: ... in local epochs, not steps.
      optimisers: of the clients; empty for any.
      plain: ... without weight decay and, if a message is of several steps, without
        momentum.
      schedules: ... at a learning rate that may change over rounds.
      keeps: ... with an optimiser that may be kept from round to round.
      algorithms_not: of the clients, that it cannot imitate.
      single_gradient: a message is one gradient of all of a client's rows, of which
        there are no more than `most_rows` of the attack's settings.
      more_messages_than_parameters: of every client.
      last_bias: one array of the model must be the bias of its outputs, and the loss the
        usual one of the task.
      proxy: the adversary has rows of its own, some of every class.
    """

    views: tuple[View, ...] = ("messages",)
    members: bool = False
    task: str = ""
    linear: bool = False
    categorical: bool = False
    training: bool = False
    epochs: bool = False
    optimisers: tuple[str, ...] = ()
    plain: bool = True
    schedules: bool = False
    keeps: bool = False
    algorithms_not: tuple[str, ...] = ()
    single_gradient: bool = False
    more_messages_than_parameters: bool = False
    last_bias: bool = False
    proxy: bool = False

    def __post_init__(self):
        """Refuses views that there are not.

        Raises:
          ValueError: naming one.
        """
        for view in self.views:
            if view not in SEEN:
                known = ", ".join(SEEN)
                raise ValueError(f"views: expected some of {known}, got {view!r}")


def missing(needs: Needs, view: AdversaryView, settings: object = None) -> str:
    """Why an attack does not apply, in one line; empty if it does.

    Args:
      needs: of the attack.
      view: what the adversary has; without a transcript, what can be said before.
      settings: of the attack.
    """
    return (
        _about_view(needs, view)
        or _about_columns(needs, view)
        or _about_training(needs, view)
        or _about_messages(needs, view, settings)
        or _about_proxy(needs, view)
    )


def last_bias(params: Params, outputs: int) -> int | None:
    """Which leaf `[R, ...]` adds to the outputs: the only one of their shape."""
    leaves = jax.tree.leaves(params)
    fits = [at for at, leaf in enumerate(leaves) if leaf.shape[1:] == (outputs,)]
    return fits[0] if len(fits) == 1 else None


def _about_view(needs: Needs, view: AdversaryView) -> str:
    if view.sees not in needs.views:
        first, *others = needs.views
        wanted = ", or ".join([SEEN[first], *others])
        return f"needs {wanted}, the adversary sees {SEEN[view.sees]}"
    if needs.keeps and view.training.remembers and view.sees != "messages":
        return (
            "simulates a kept optimiser only where each client's own messages are seen"
        )
    seen = view.transcript
    if not needs.members or seen is None or seen.member is None:
        return ""
    if not sums.are_known(seen):
        return UNKNOWN_MEMBERS
    ids = np.unique(seen.member)
    unknown = np.setdiff1d(ids[ids >= 0], view.clients)
    steps = view.training.local_steps(view.sizes)
    if len(unknown):
        return f"needs the rows of everybody in a sum, has none of client {unknown[0]}"
    training = view.training
    if needs.training and not training.stateless and len(set(steps)) > 1:
        return (
            f"simulates {training.rule} in sums only if all clients take as many local "
            f"steps, they take {_span(steps, 'step')}"
        )
    return ""


def _about_columns(needs: Needs, view: AdversaryView) -> str:
    if needs.categorical and view.continuous:
        return "the sensitive column is a number, not a category"
    wrong_task = needs.task not in ("", view.task)
    if needs.linear and (wrong_task or not view.linear):
        return f"needs a linear model and a {needs.task} target"
    if wrong_task:
        return f"needs a {needs.task} target"
    if (needs.linear or needs.last_bias) and not view.usual_loss:
        return f"needs the {losses.USUAL[view.task]} loss, clients have another"
    return ""


def _about_training(needs: Needs, view: AdversaryView) -> str:
    training = view.training
    if needs.training and training.missing:
        return f"needs to be told {' and '.join(training.missing)}"
    if needs.optimisers:
        known = training.optimiser in needs.optimisers
        momentum = training.momentum and not needs.single_gradient
        extra = needs.plain and (momentum or training.weight_decay)
        if not known or extra:
            wanted = " or ".join(needs.optimisers) + (" alone" if known else "")
            return f"needs clients that use {wanted}, they use {training.rule}"
    if needs.training and training.schedule and not needs.schedules:
        return "needs clients whose learning rate is the same in all rounds"
    if training.algorithm in needs.algorithms_not:
        return f"does not simulate {training.algorithm}"
    if needs.single_gradient and training.dropout:
        return "does not simulate dropout"
    simulates = needs.training or needs.single_gradient
    if training.remembers and simulates:
        if not needs.keeps:
            return "does not simulate an optimiser that is kept from round to round"
        if not _is_whole(view):
            return (
                f"simulates a kept {training.optimiser} only from the training's first "
                "round on, every round recorded"
            )
    if needs.epochs and training.steps is not None:
        return "needs batch_size and local_epochs, was told local steps"
    if needs.training and not training.batches(view.sizes).all():
        return (
            f"needs clients with {training.batch_size} rows or more, as drop_last leaves "
            f"nothing of fewer, they have {_span(view.sizes, 'row')}: leave others out"
        )
    return ""


def _is_whole(view: AdversaryView) -> bool:
    """Whether what an optimiser has kept can be known: momentum fades, moments do not."""
    if view.transcript is None or view.training.optimiser == "sgd":
        return True
    return from_the_start(view.transcript.round)


def from_the_start(rounds: Array) -> bool:
    """Whether recorded rounds `[R]` are all, by their numbers from 0 or 1 on."""
    return bool(rounds[0] <= 1 and (np.diff(rounds) == 1).all())


def _about_messages(needs: Needs, view: AdversaryView, settings: object) -> str:
    if needs.single_gradient:
        why = _more_than_a_gradient(view, getattr(settings, "most_rows", np.inf))
        if why:
            return why
    if view.transcript is None or view.messages is None:
        return ""
    leaves = jax.tree.leaves(view.transcript.params)
    if needs.last_bias and last_bias(leaves, view.outputs) is None:
        return "the model has no array that must be its last layer's bias"
    size = sum(leaf[0].size for leaf in leaves)
    fewest = int(view.messages.count.min())
    if needs.more_messages_than_parameters and fewest <= size:
        return f"needs {size + 1} messages of each client, got {fewest}"
    return ""


def _more_than_a_gradient(view: AdversaryView, most_rows: float) -> str:
    training, sizes = view.training, view.sizes
    steps, rows = training.local_steps(sizes), _span(sizes, "row")
    most = "" if np.isinf(most_rows) else f", of {most_rows:g} at most"
    needed = f"needs a message to be one step over all rows of a client{most}"
    if steps.max() > 1 or sizes.max() > most_rows:
        return f"{needed}, it is {_span(steps, 'step')} over {rows}"
    if training.batch_size and training.batch_size < sizes.max():
        return (
            f"{needed}, it is one over {training.batch_size} of {rows}, not known which"
        )
    return ""


def _about_proxy(needs: Needs, view: AdversaryView) -> str:
    if not needs.proxy:
        return ""
    if view.proxy is None:
        return "needs proxy rows, the adversary's own"
    absent = sorted(set(range(view.outputs)) - set(view.proxy.y.tolist()))
    return f"has no proxy row of class {absent[0]}" if absent else ""


def _span(values: np.ndarray, noun: str) -> str:
    low, high = int(values.min()), int(values.max())
    number = str(low) if low == high else f"{low} to {high}"
    return f"{number} {noun}{'' if high == 1 else 's'}"
