"""A generated federation with its initial model: what benchmarks train."""

import dataclasses
from typing import NamedTuple

import jax

from experiments.benchmarks import federations, harness, trainings
from fljax import accelerators, federation, schedule
from fljax.driver.option import option
from fljax.federation import Federation
from fljax.types import Model, Rows

LANES = {"medical": 2, "income_l": 10, "income_a": 8, "thousand": 8}  # fast on a CPU
_ROUNDS = {"medical": 100, "income_l": 20, "income_a": 2, "thousand": 5}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(harness.SmallFlags):
    """Of a benchmark of the engine on the two smaller federations; no prefix."""

    shapes: tuple[federations.Name, ...] = option(
        ("medical", "income_l"), "federations to run"
    )
    repeats: int = option(15, "timed calls, of which the fastest counts", min=1)


def lanes(name: federations.Name) -> tuple[int | None, ...]:
    """Of the fastest schedules; None leaves the number to `schedule.build`."""
    return (LANES[name], 2) if not accelerators.used() else (None,)


class Problem(NamedTuple):
    """A federation and what every side of a comparison starts from."""

    name: federations.Name
    shape: federations.Shape
    rows: Rows
    model: Model
    params: dict
    num_rounds: int

    def schedule(
        self, lanes: int | None, *, num_rounds: int | None = None, shuffle: bool = True
    ) -> schedule.Schedule:
        """Of all its rounds, or of the first few."""
        rounds = num_rounds or self.num_rounds
        return schedule.build(
            self.shape.sizes,
            num_rounds=rounds,
            batch_size=federations.BATCH_SIZE,
            lanes=lanes,
            shuffle=shuffle,
            record_rounds=[rounds - 1],
        )

    def federation(
        self, lanes: int | None, *, num_rounds: int | None = None, shuffle: bool = True
    ) -> Federation:
        """For `federation.train`; arguments are those of `schedule`."""
        parts = federations.split(self.rows, self.shape.sizes)
        tables = federation.tables(
            [parts],
            lambda *_: self.schedule(lanes, num_rounds=num_rounds, shuffle=shuffle),
        )
        return Federation(trainings.method(self.model), tables)


def build(
    name: federations.Name, flags: harness.SmallFlags, num_rounds: int | None = None
) -> Problem:
    """Draws a federation and its initial model; its rounds are 100, 20 or 2 by shape."""
    shape = federations.shape(name, flags.smoke)
    model = federations.model(shape)
    params = jax.jit(model.init)(jax.random.key(flags.seed))
    rows = federations.generate(shape, flags.seed)
    default = 2 if flags.smoke else _ROUNDS[name]
    return Problem(name, shape, rows, model, params, num_rounds or default)
