"""What is accounted, and what is said of it: every number with its assumptions."""

import dataclasses
import math
from typing import Literal, NamedTuple

import numpy as np

Seen = Literal["messages", "examples", "sum", "models", ""]
Way = Literal["printed", "implemented", "recommended", "refused"]


class Statement(NamedTuple):
    """An epsilon with all that it rests on, or why there is none.

    Attributes:
      way: 'printed' as a paper computes it, 'implemented' for what was done,
        'recommended' for clipping and noise as the theorem wants them, 'refused' for a
        claim that cannot be had.
      name: which statement of that way.
      unit: whom it protects, 'record' or 'client'.
      epsilon: None if there is no number.
      delta: of epsilon.
      adjacency: which data sets count as neighbours.
      sampling: how what is summed was chosen, and what noise the sum has.
      composition: how many sums, and how they were composed.
      seen: by the adversary whom it holds against: 'messages' of a client, as its server
        has them, single `examples` before they are summed, the `sum` of a round and who
        is in it, or the global 'models' alone; empty where a paper does not say.
      reason: why there is no number, or what keeps one from being exact.
    """

    way: Way
    name: str
    unit: str
    epsilon: float | None
    delta: float
    adjacency: str = ""
    sampling: str = ""
    composition: str = ""
    seen: Seen = ""
    reason: str = ""

    @property
    def assumption(self) -> str:
        """All of it in one line."""
        said = (self.adjacency, self.sampling, self.composition, self.reason)
        return "; ".join(part for part in said if part)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """A federated training with clipping and Gaussian noise.

    `sigma` is what papers call the noise scale: one draw has the deviation sigma C, where
    every one of the M layers is clipped to C, so that a unit moves a sum by up to
    C sqrt(M). A schedule of C leaves every epsilon as it is.

    Attributes:
      rounds: T.
      local_steps: L of a client in a round.
      batch_size: B, the mean of the batches of a pass, expected where they are Poisson.
      records: N_i of a client.
      clients: K.
      clients_per_round: K_t, expected where any number may come.
      sigma: deviation of one draw of noise over C; 0: no noise.
      clip: C; no epsilon depends on it.
      layers: M, number of parts that are clipped apart.
      delta: of every epsilon.
      draws: 'one' draw on a sum, or one for 'each' example (Fed-CDP) or client (Fed-SDP)
        in it.
      batches: 'poisson', 'fixed' (disjoint batches in the same order in every round, an
        epoch at a time) or 'without_replacement' (a fixed size, drawn anew in each step).
      copies: R, clients that hold the same record.
      participants: how clients come into a round: each independently ('poisson'), or a
        fixed number of them, of whom Poisson's epsilons do not hold.
      largest: rows of every batch of a pass but the last, which may have fewer; None:
        B if that is whole, else the most that a pass of this mean can have. Where it is
        told, a draw for each example is that many draws, however many are there.

    Raises:
      ValueError: for numbers out of range or that do not fit each other.
    """

    rounds: int
    local_steps: int
    batch_size: float
    records: int
    clients: int
    clients_per_round: float
    sigma: float
    clip: float
    layers: int
    delta: float
    draws: Literal["one", "each"] = "one"
    batches: Literal["poisson", "fixed", "without_replacement"] = "poisson"
    copies: int = 1
    participants: Literal["poisson", "fixed"] = "poisson"
    largest: int | None = None

    def __post_init__(self):
        for name in (
            "rounds", "local_steps", "records", "clients", "layers", "copies",
        ):  # fmt: skip
            value = getattr(self, name)
            if not value >= 1 or value % 1:
                raise ValueError(f"{name} must be whole and >= 1, got {value}")
        for name in ("batch_size", "clients_per_round"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")
        for small, large in (
            ("batch_size", "records"),
            ("batch_size", "largest"),
            ("largest", "records"),
            ("clients_per_round", "clients"),
            ("copies", "clients"),
        ):
            least, most = getattr(self, small), getattr(self, large)
            if None not in (least, most) and least > most:
                raise ValueError(f"{small} must be <= {large}={most}, got {least}")
        if self.batches == "without_replacement" and self.batch_size % 1:
            raise ValueError(
                f"batch_size must be whole without replacement, got {self.batch_size:g}"
            )
        if not 0 < self.clip < np.inf:
            raise ValueError(f"clip must be > 0 and finite, got {self.clip}")
        if not 0 <= self.sigma < np.inf:
            raise ValueError(f"sigma must be >= 0 and finite, got {self.sigma}")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be in (0, 1), got {self.delta}")
        for name, known in (
            ("draws", ("one", "each")),
            ("batches", ("poisson", "fixed", "without_replacement")),
            ("participants", ("poisson", "fixed")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, "
                    f"got {getattr(self, name)!r}"
                )

    @property
    def steps(self) -> int:
        """Local steps of a client who is in every round."""
        return self.rounds * self.local_steps

    @property
    def sampling_rate(self) -> float:
        """q of a record in a batch of its client."""
        return self.batch_size / self.records

    @property
    def one_pass(self) -> list[int]:
        """Rows of each of its fixed batches."""
        size = self.largest or math.ceil(self.batch_size)
        if self.largest is None and self.batch_size % 1:
            others = math.ceil(self.records / self.batch_size * (1 - 1e-9)) - 1
            size = max(size, (self.records - 1) // max(others, 1))
        full, rest = divmod(self.records, size)
        return [size] * full + [rest] * (rest > 0)

    @property
    def follows_batch(self) -> bool:
        """Whether the noise is of the examples that are there, not of a stated number."""
        return self.draws == "each" and self.largest is None

    @property
    def stated(self) -> float:
        """Examples that noise of one deviation is drawn for: of the largest fixed batch."""
        largest = self.largest if self.batches == "fixed" else None
        return largest or self.batch_size

    @property
    def participation(self) -> float:
        """p of a client in a round."""
        return self.clients_per_round / self.clients

    def multiplier(self, summands: float) -> float:
        """Noise over sensitivity of a sum of so many, each of whose layers is clipped."""
        drawn = summands if self.draws == "each" else 1
        return self.sigma * float(np.sqrt(drawn / self.layers))

    def noise(self, summands: float) -> str:
        """`multiplier` in words."""
        if not self.sigma:
            return "there is no noise"
        drawn = f"{summands:g} draws" if self.draws == "each" else "one draw"
        clipped = (
            f"each of M = {self.layers} layers is clipped to C = {self.clip:g}, so"
        )
        by = f"up to C sqrt(M) = {self.clip * self.layers**0.5:.4g}"
        if self.layers == 1:
            clipped = "all layers together are clipped, so"
            by = f"up to C = {self.clip:g}"
        return (
            f"{clipped} one unit moves the sum by {by}; the noise is {drawn} of deviation "
            f"sigma C = {self.sigma * self.clip:.4g}, {self.multiplier(summands):.4g} "
            "times that"
        )
