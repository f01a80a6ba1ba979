"""What each client of a running federation has spent, round by round.

    ledger = privacy.Ledger(noise, delta=1e-5, steps=local_steps, budget=8.0)
    for number in range(rounds):
        chosen = [client for client in drawn if ledger.affords([client])]
        ...                                    # they train and send
        ledger.charge(number, chosen)
    ledger.spent(client)

After any round a client's epsilon is that of `privacy.guarantee` for the rounds that it
was in, to the last bit: a ledger holds counts, not sums of epsilons. Who takes part in a
round is taken to be seen, unless the noise says that it is not (clients that come by
independent draws, in secret): then every round is charged to everybody.
"""

import bisect
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from fljax.privacy import exact
from fljax.privacy.noise_spec import epsilons, guarantee
from fljax.privacy.sampled import Accountant
from fljax.types import Array, NoiseSpec


class Ledger:
    """Epsilons of the clients of a federation that goes on, for one kind of noise."""

    def __init__(
        self,
        noise: NoiseSpec,
        *,
        delta: float,
        steps: Array | int = 1,
        budget: float = np.inf,
        accountant: Accountant = "rdp",
    ):
        """Nothing is spent.

        Args:
          noise: from the defense, concrete.
          delta: of every epsilon, in (0, 1).
          steps: `[C]` or [], noisy sums over a client's records in each of its rounds;
            noise on whole clients is on one sum a round.
          budget: epsilon that nobody is to exceed.
          accountant: 'rdp' or 'pld'.

        Raises:
          ValueError: for numbers out of range.
        """
        if not budget > 0:
            raise ValueError(f"budget must be > 0, got {budget}")
        exact.check_steps(steps)
        if np.ndim(steps) > 1:
            raise ValueError(f"steps: expected [clients] or one, got {np.shape(steps)}")
        if noise.unit == "client":
            steps = 1
            if noise.sampling == "fixed":  # who is drawn is known by now
                noise = noise._replace(sampling="all", sampling_rate=1.0)
        self._noise, self._delta = noise, delta
        self._accountant: Accountant = accountant
        self._steps, self._budget = steps, budget
        self._secret = (noise.unit, noise.sampling) == ("client", "poisson")
        numbers = noise.noise_multiplier, noise.sampling_rate, steps
        of_each = [np.shape(each)[0] for each in numbers if np.ndim(each)]
        self._most_clients = min(of_each, default=None)
        self._rounds: dict[int, int] = {}
        self._passed = 0  # rounds, whoever was in them
        epsilons(noise, steps, delta, accountant, rounds=1)  # looks at the numbers

    def charge(self, round: int, clients: Iterable[int]) -> None:
        """Notes who took part in a round, whatever the budget says.

        Args:
          round: its number, from 0, above that of the round before.
          clients: ids, each once.

        Raises:
          ValueError: for a round that was charged, or a client that is not known or
            there twice; nothing is charged then.
        """
        there = list(clients)
        self.check(round, there)
        self._passed = operator.index(round) + 1
        for client in map(operator.index, there):
            self._rounds[client] = self._rounds.get(client, 0) + 1

    def check(self, round: int, clients: Iterable[int]) -> None:
        """Refuses what cannot be charged, before anything is.

        Args:
          round: as in `charge`.
          clients: as there.

        Raises:
          ValueError: as `charge` does.
        """
        there = [_whole("client", client) for client in clients]
        if _whole("round", round) < self._passed:
            raise ValueError(
                f"round: expected {self._passed} or more, none that is charged or before "
                f"it, got {round}"
            )
        if len(set(there)) < len(there):
            raise ValueError(f"round {round}: expected each client once, got {there}")
        for client in there:
            self._check(client)

    def rounds(self, client: int) -> int:
        """Rounds that are charged to a client."""
        self._check(client)
        return self._passed if self._secret else self._rounds.get(client, 0)

    def spent(self, client: int) -> float:
        """Epsilon of a client so far."""
        return self._after(client, self.rounds(client))

    def affords(self, clients: Iterable[int]) -> bool:
        """Whether one more round leaves all of these clients within the budget."""
        return all(
            self._after(client, self.rounds(client) + 1) <= self._budget
            for client in clients
        )

    def within(self, present: Array) -> np.ndarray:
        """The rounds to come without those that somebody cannot afford.

        Args:
          present: `[T, C]` bool, who is drawn for which of the next rounds
            (`participation.table`), without a look at any data.

        Returns:
          `[T, C]` bool; a client who has spent its budget comes no more.

        Raises:
          ValueError: for another shape.
        """
        drawn = np.asarray(present, bool)
        if drawn.ndim != 2:
            raise ValueError(f"present: expected [rounds, clients], got {drawn.shape}")
        counted = np.ones_like(drawn) if self._secret else drawn
        total, first = len(drawn), [self.rounds(c) for c in range(drawn.shape[1])]
        most = [
            bisect.bisect_right(
                range(before + 1, before + total + 1),
                self._budget,
                key=lambda count, client=client: self._after(client, count),
            )
            for client, before in enumerate(first)
        ]
        return drawn & (counted.cumsum(axis=0) <= np.array(most))

    def statement(self) -> dict[str, Any]:
        """What was charged, in what JSON holds: clients by id, epsilons, and their basis.

        Where it is not seen who came, it does not say so either: all clients are there,
        as one `everybody` where nothing tells how many they are.
        """
        charged = self._charged()
        noise, most = self._noise, max(map(self.rounds, charged.values()), default=0)
        steps = self._steps * np.asarray(most)
        said = guarantee(noise, steps, self._delta, rounds=most)
        return {
            "unit": noise.unit,
            "delta": self._delta,
            "accountant": self._accountant,
            "budget": self._budget if np.isfinite(self._budget) else None,
            "rounds": {name: self.rounds(each) for name, each in charged.items()},
            "epsilon": {
                name: epsilon if np.isfinite(epsilon) else str(epsilon)
                for name, each in charged.items()
                for epsilon in [self.spent(each)]
            },
            "assumption": said.assumption,
        }

    def _charged(self) -> dict[str, int]:
        """Name of a client -> its id; of everybody any id will do."""
        if not self._secret:
            return {str(each): each for each in sorted(self._rounds)}
        if self._most_clients is None:
            return {"everybody": 0}
        return {str(each): each for each in range(self._most_clients)}

    def _after(self, client: int, rounds: int) -> float:
        each = np.asarray(self._steps)
        steps = int(each[client] if each.ndim else each) * rounds
        told = self._noise.of_client(client), steps, self._delta, self._accountant
        return float(epsilons(*told, rounds=rounds)[0])

    def _check(self, client: int) -> None:
        client = _whole("client", client)
        most = self._most_clients
        if client < 0 or (most is not None and client >= most):
            known = "0 or more" if most is None else f"an id below {most}"
            raise ValueError(f"client: expected {known}, got {client}")


def _whole(name: str, number: Any) -> int:
    try:
        whole = operator.index(number)
    except TypeError:
        whole = None
    if whole is None or isinstance(number, bool):
        raise ValueError(f"{name}: expected a whole number, got {number!r}")
    return whole
