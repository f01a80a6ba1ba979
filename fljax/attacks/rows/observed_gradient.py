"""One gradient as it was observed, with what rows are told apart by: hidden units where
the second layer tells them, else the gradients at the first layer's outputs."""

from typing import NamedTuple

import numpy as np

from fljax.attacks.rows import forward, search, span, units, weights
from fljax.attacks.rows.forward import Hidden
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.schema import Schema
from fljax.attacks.rows.search import Effort
from fljax.attacks.rows.span import Sent
from fljax.attacks.rows.weights import Weights
from fljax.losses import LossFn
from fljax.types import Params


class ObservedGradient(NamedTuple):
    """A gradient, and what is known of the rows behind it.

    Attributes:
      network: at which it was taken.
      sent: what came of the first layer.
      hidden: and of the second, None where that does not tell rows apart.
      schema: how the table is encoded.
      targets: `[t]` different ones, what a row's target may be.
      rows: of the batch.
    """

    network: Network
    sent: Sent
    hidden: Hidden | None
    schema: Schema
    targets: np.ndarray
    rows: int

    @property
    def rank(self) -> int:
        """Rows that can be told apart."""
        return self.sent.rank if self.hidden is None else self.hidden.rank

    @property
    def distinct_targets(self) -> np.ndarray:
        """Targets whose deltas differ by more than length, as few do for two classes."""
        return self.network.distinct(self.schema.off, self.targets)

    def search_rows(
        self, seed: int, effort: Effort, wanted: int | None = None
    ) -> np.ndarray:
        """Encoded rows `[n, D]`, each once, as they are solved for.

        Of a network that is blind to the length of its inputs, as layer normalisation
        after a layer with biases of 0 makes it, they may be multiples of rows.

        Args:
          seed: of what the search draws.
          effort: how hard to look.
          wanted: rows that are enough, None for all.
        """
        most = min(self.rank, wanted or self.rank)
        if self.hidden is None:
            return search.search(
                self.network,
                self.sent,
                self.schema,
                self.distinct_targets,
                most,
                seed=seed,
                effort=effort,
            )
        return units.search(
            self.network,
            self.sent,
            self.hidden,
            self.schema,
            self.targets,
            self.rows,
            most,
            seed=seed,
            effort=effort,
        )

    def weights(self, x: np.ndarray) -> Weights:
        """Targets of encoded rows `[n, D]`, and how often each is there."""
        if self.hidden is None:
            return weights.first(self.network, self.sent, x, self.targets, self.rows)
        return weights.second(self.network, self.hidden, x, self.targets, self.rows)


def observe(
    params: Params,
    message: Params,
    loss_fn: LossFn,
    schema: Schema,
    rows: int,
    targets: np.ndarray,
) -> ObservedGradient:
    """The mean gradient of so many rows.

    Args:
      params: at which it was taken, of a model with a first `TabularDense` layer.
      message: the gradient, in the precision that it travelled in.
      loss_fn: of one example.
      schema: how the table is encoded.
      rows: of the batch.
      targets: `[t]` what a row's target may be.
    """
    network = Network(params, loss_fn)
    sent = span.sent(network.layer.gradient(message), rows)
    hidden = forward.hidden(network, message, rows)
    every = np.unique(np.asarray(targets))
    return ObservedGradient(network, sent, hidden, schema, every, rows)
