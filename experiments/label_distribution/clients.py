"""The attacked clients: their rows, what they send, and their true label distributions.

No module of the attack imports this one.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from experiments.label_distribution.settings import Config
from experiments.label_distribution.training import Programs
from fljax.attacks.label_distribution import shadow_clients
from fljax.attacks.label_distribution.shadow_clients import Pool
from fljax.defenses.specs import Spec
from fljax.types import Params

_SHARES, _CLIENTS = 11, 12  # streams of a seed


class Truth(NamedTuple):
    """Of `n` clients.

    Attributes:
      labels: `[n, K]` share of each label among a client's rows.
      alphas: `[n]` concentration that each client's labels were drawn with.
    """

    labels: np.ndarray
    alphas: np.ndarray


class Clients:
    """All attacked clients of a seed draw their rows from one pool."""

    def __init__(self, run: Config, rows: Pool, programs: Programs):
        """Trains nothing yet.

        Args:
          run: how many clients, and how they train.
          rows: that the clients' are drawn from.
          programs: of their training.
        """
        self._run, self._programs = run, programs
        self._rows = programs.placed(rows)

    def messages(
        self, spec: Spec, seed: int, sent: Params
    ) -> Iterator[tuple[jax.Array, Truth]]:
        """Trains the clients of a seed, a chunk at a time.

        Args:
          spec: their defense.
          seed: of their draws.
          sent: the model that they start from.

        Yields:
          Messages `[n, P]`, sent minus returned, raveled, and the truth about their
          senders.
        """
        run, key = self._run, jax.random.key(seed)
        shares, alphas = shadow_clients.dirichlet(
            jax.random.fold_in(key, _SHARES), run.alphas, run.test_clients,
            len(self._rows.count),
        )  # fmt: skip
        begin = 0
        for each in shadow_clients.chunks(
            self._programs.of(spec), jax.random.fold_in(key, _CLIENTS),
            np.arange(run.test_clients), shares, sent, self._rows,
            self._programs.numbers(spec), size=run.chunk,
        ):  # fmt: skip
            end = begin + len(each.labels)
            yield each.delta, Truth(jax.device_get(each.labels), alphas[begin:end])
            begin = end
