"""What an adversary has: `AdversaryView`, the one argument of every attack.

The sensitive column is absent from it, and nothing leads from it to the rows; what
compares with the truth is `fljax.auditing.scoring`, or the scoring of an experiment.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from fljax import dropout, losses, packing
from fljax.defenses.specs import Spec
from fljax.transcript import views
from fljax.types import Array, Known, Transcript


class LocalTraining(NamedTuple):
    """How clients train in a round, as far as the adversary knows; None where it does not.

    Attributes:
      batch_size: rows per mini-batch, 0 for all rows.
      learning_rate: of the clients; where it changes over rounds, of the first.
      epochs: local epochs.
      steps: local steps in place of epochs.
      drop_last: whether rows behind the last full batch of an epoch are left out; else
        they are a smaller one.
      optimiser: of the clients; not known counts as sgd.
      momentum: of sgd; 0 for none.
      weight_decay: of any optimiser; 0 for none.
      algorithm: fed_avg, fed_sgd, fed_prox or another name.
      proximal: mu of fed_prox.
      schedule: learning rate of each round over that of the first; empty where it stays.
      num_rounds: of the run.
      kept: whether their optimiser's state goes on from round to round.
      dropout: probability that a hidden unit is dropped; 0 for none.
    """

    batch_size: int | None = None
    learning_rate: float | None = None
    epochs: int | None = None
    steps: int | None = None
    drop_last: bool = False
    optimiser: str = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    algorithm: str = "fed_avg"
    proximal: float | None = None
    schedule: tuple[float, ...] = ()
    num_rounds: int | None = None
    kept: bool = False
    dropout: float = 0.0

    @property
    def missing(self) -> list[str]:
        """What has to be known before a round can be simulated, and is not."""
        needed = {"learning_rate": self.learning_rate}
        if self.steps is None:
            needed |= {"batch_size": self.batch_size, "local_epochs": self.epochs}
        if self.algorithm == "fed_prox":
            needed |= {"proximal": self.proximal}
        return [name for name, value in needed.items() if value is None]

    @property
    def stateless(self) -> bool:
        """Whether a step depends on no earlier one."""
        return self.optimiser == "sgd" and not self.momentum

    @property
    def remembers(self) -> bool:
        """Whether a round depends on earlier ones."""
        return self.kept and not self.stateless

    @property
    def rule(self) -> str:
        """The rule of a step, for people."""
        numbers = {"momentum": self.momentum, "weight decay": self.weight_decay}
        extra = [f"{name} {value:g}" for name, value in numbers.items() if value]
        return " with ".join([self.optimiser, *filter(None, [" and ".join(extra)])])

    def factors(self, rounds: np.ndarray) -> np.ndarray:
        """Learning rate in rounds of any shape over `learning_rate`.

        The last round of the schedule counts for all that follow.
        """
        rounds = np.asarray(rounds)
        if not self.schedule:
            return np.ones(rounds.shape)
        return np.asarray(self.schedule)[np.clip(rounds, 0, len(self.schedule) - 1)]

    def takes_all(self, sizes: np.ndarray) -> np.ndarray:
        """Whether clients with so many rows `[C]` take each step on all of them."""
        if self.batch_size is None:
            return np.zeros(np.shape(sizes), bool)
        return (self.batch_size == 0) | (np.asarray(sizes) <= self.batch_size)

    def sends_noise(self, sizes: np.ndarray) -> np.ndarray:
        """Whether messages of clients with so many rows `[C]` depend on what they draw."""
        return ~self.takes_all(sizes) | bool(self.dropout)

    def local_steps(self, sizes: np.ndarray) -> np.ndarray:
        """Local steps `[C]` of clients with so many rows, if nothing is missing."""
        work = self.batch_size or None, self.epochs or 1, self.steps, self.drop_last
        return np.asarray(packing.steps_per_round(sizes, *work))

    def batches(self, sizes: np.ndarray) -> np.ndarray:
        """Batches `[C]` of an epoch of clients with so many rows."""
        batch = self.batch_size or None
        return np.asarray(packing.batches_per_epoch(sizes, batch, self.drop_last))


class ProxyRows(NamedTuple):
    """The adversary's own rows: inputs `[N, D]` and classes `[N]`."""

    x: np.ndarray
    y: np.ndarray


class AdversaryView(NamedTuple):
    """All that the adversary has of the attacked clients `C` of one training.

    Attributes:
      transcript: of one seed, parameters in the structure of the model, in the
        precision that they travelled in; None before a training, where only what an
        attack needs is asked for.
      messages: where the clients' messages lie in it, `[C, Q]`.
      clients: `[C]` ids.
      known: public columns and targets of their rows, leaves `[C, n, ...]`.
      candidates: `[K, W]` values that the sensitive block may take; if continuous
        `[2, 1]`, the range.
      continuous: whether it is a number.
      loss_fn: of one example, the sensitive block last in its numeric inputs.
      apply: `(params, x) -> outputs` of the model, of one example.
      task: regression, binary or multiclass.
      outputs: of the model, 1 but for multiclass.
      linear: whether the model is known to be linear.
      training: how the clients train.
      seed: of what attacks draw.
      proxy: the adversary's own rows, if it has any.
      num_rows: `[C]` rows that each client trains on, where that is not the number of
        known ones.
      defense: that the clients train with, without alternatives; None where the
        adversary knows of none.
      sees: which of `transcript.views.View` the transcript is. Of sums, `messages` are
        those that a client is in.
    """

    transcript: Transcript | None
    messages: views.ClientView | None
    clients: np.ndarray
    known: Known
    candidates: np.ndarray
    continuous: bool
    loss_fn: losses.LossFn
    apply: Callable[..., Array]
    task: str
    outputs: int
    linear: bool
    training: LocalTraining
    seed: int
    proxy: ProxyRows | None = None
    num_rows: np.ndarray | None = None
    defense: Spec | None = None
    sees: views.View = "messages"

    def of(self, which: np.ndarray) -> "AdversaryView":
        """The same of some of the clients, by their numbers `[I]` from 0."""
        assert self.messages is not None
        return self._replace(
            messages=self.messages.of(which),
            clients=np.asarray(self.clients)[which],
            known=jax.tree.map(lambda leaf: leaf[which], self.known),
            num_rows=None if self.num_rows is None else self.num_rows[which],
        )

    def read_only(self) -> "AdversaryView":
        """The same, with arrays that nobody can write to: attacks share them."""
        return jax.tree.map(_locked, self)

    @property
    def drops(self) -> bool:
        """Whether the model has layers of dropout."""
        if self.transcript is None:
            return False
        params = jax.tree.map(lambda leaf: leaf[0], self.transcript.params)
        row = jax.tree.map(lambda leaf: leaf[0, 0], self.known.public)
        numeric = np.append(row.numeric, np.zeros(np.shape(self.candidates)[-1]))
        return dropout.drops(self.apply, params, row._replace(numeric=numeric))

    @property
    def mean_loss(self) -> losses.LossFn:
        """Of one example, what clients descend on average: under dropout not `loss_fn`."""
        if not self.training.dropout:
            return self.loss_fn
        width = np.shape(self.candidates)[-1]
        return dropout.MeanLoss(self.loss_fn, self.training.dropout, block=width)

    @property
    def usual_loss(self) -> bool:
        """Whether the loss is that of the task, as far as it shows what it is."""
        shown = getattr(self.loss_fn, "element_loss", None)
        return shown is None or shown is losses.of_task(self.task)

    @property
    def num_rounds(self) -> int:
        """Of the run; where nobody says, to the last round that was seen.

        Of models no last round is seen, since no model is sent after it.
        """
        assert self.transcript is not None
        seen = int(self.transcript.round[-1]) + 1 + (self.sees == "models")
        return max(self.training.num_rounds or 0, seen)

    @property
    def sizes(self) -> np.ndarray:
        """Rows of each client `[C]`."""
        if self.num_rows is not None:
            return self.num_rows
        return np.asarray(self.known.mask).sum(axis=1)


def _locked(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray):
        return leaf
    seen = leaf.view()
    seen.flags.writeable = False
    return seen
