"""A federation: where rows, model, clients' algorithm, schedule, server, defense and seeds
meet a compiled program.

    tables = Tables.of(rows, parts, num_rounds=50, batch_size=32)
    federation = Federation(FedAvg(model=..., loss_fn=..., optimiser=...), tables)
    run = train(federation, Training.of_seeds(0)).of(0)

What is compiled is the `method`; everything else is data: whose rows, which schedule, the
seed, and the numbers from which the method builds its parts (rates, clips, noise scales).
So a sweep over all of them, in as many calls as you like, is one program. Trainings are
dealt to the devices one by one (`parallel`), so that what comes of one depends neither on
their number, from two on, nor on the others; on a single one, or side by side, additions are
ordered otherwise, and float32 differs in its last digits.
"""

from fljax.federation.method import FedAvg, Method, Parts, average, prepared
from fljax.federation.scales import learning_rate, scales
from fljax.federation.side_by_side import SIDE_BY_SIDE
from fljax.federation.tables import Tables, Training, of, tables
from fljax.federation.training import (
    Evaluate,
    Federation,
    States,
    Trained,
    evenly,
    final,
    measure,
    train,
)

__all__ = [
    "SIDE_BY_SIDE", "Evaluate", "FedAvg", "Federation", "Method", "Parts", "States",
    "Tables", "Trained", "Training", "average", "evenly", "final", "learning_rate", "measure", "of",
    "prepared", "scales", "tables", "train",
]  # fmt: skip
