"""How much memory a run takes, and whether there is as much.

What grows with clients and rounds is the transcript: it is held once per training, and
once more on each device by an attack that reads all of one seed's.
"""

from typing import NamedTuple

import jax

from experiments.aia.setup import Setup
from fljax import memory as memory_lib
from fljax.attacks.trajectory import relaxation
from fljax.auditing import effort
from fljax.driver.config import ConfigError

_PROGRAM = 5e8  # bytes of Python, its packages and the compiled programs
_MOMENTS = 4  # models that a client's optimiser keeps, two at most, and their copy
# Attacks that read one message of a client; the others, one's own too, read all.
_READ_LAST = {"model", "active", "oracle"}


class Sizes(NamedTuple):
    """Bytes.

    Attributes:
      rows: all clients' rows of all seeds: here, as the adversary knows them, strangers
        in their places, and on each device that trains.
      transcript: what the adversary keeps, of all seeds.
      training: models, gradients and the models that were sent, side by side, and
        what the devices keep of the transcript until it is whole.
      attacks: copies of one seed's transcript, and of rows under each value of a
        sensitive category.
    """

    rows: float
    transcript: float
    training: float
    attacks: float

    @property
    def total(self) -> float:
        work = max(self.training, self.attacks)
        return self.rows + self.transcript + work + _PROGRAM


def estimate(setup: Setup) -> Sizes:
    """Memory of one point of a run."""
    config, schedule = setup.config, setup.problem.schedule
    num_seeds, recorded, num_slots = schedule.recorded_clients.shape
    count = 4 * setup.num_parameters
    message = count // 2 if config.run.record_dtype == "bfloat16" else count
    seen = num_seeds * recorded * (count + num_slots * message)
    devices = len(jax.devices())
    read = devices if set(config.attack.kinds) - _READ_LAST else 0
    places = devices * -(-num_seeds // devices)
    kept = setup.problem.method.keeps * _MOMENTS * setup.clients.sizes.shape[1] * count
    rows = sum(leaf.nbytes for leaf in jax.tree.leaves(setup.clients.rows))
    known = strangers = 1  # also as the adversary knows them
    return Sizes(
        rows=rows * (1 + known + strangers + min(devices, max(2, num_seeds))),
        transcript=seen,
        training=min(devices, num_seeds) * (schedule.num_lanes * count * 3 + kept)
        + places * seen / num_seeds,
        attacks=read * seen / num_seeds + _of_candidates(setup),
    )


def _of_candidates(setup: Setup) -> float:
    """Of an attack that tries each candidate on each row of a client."""
    truth, config = setup.targets, setup.config
    if truth is None or not config.attack.kinds:
        return 0.0
    known, hidden = setup.known, config.model.hidden
    inputs = known.public.numeric.shape[-1] + known.public.codes.shape[-1]
    return effort.of_candidates(
        known.y.shape[-1],
        relaxation.POINTS if truth.continuous else truth.candidates.shape[1],
        inputs
        + truth.candidates.shape[2]
        + (sum(hidden) if config.model.name == "mlp" else 0),
        config.attack.kinds,
        min(len(jax.devices()), known.y.shape[0] * known.y.shape[1]),
    )


def check(setup: Setup) -> None:
    """Refuses what would be killed for want of memory, before anything is trained.

    Raises:
      ConfigError: naming the flags that need less.
    """
    sizes, free = estimate(setup), memory_lib.available()
    if sizes.total > free:
        raise ConfigError(
            f"about {sizes.total / 1e9:.1f} GB of memory are needed, {free / 1e9:.1f} GB "
            f"are free; the transcript takes {sizes.transcript / 1e9:.1f} GB: expected a "
            "smaller --max_clients_in_memory, --record=last, --record_dtype=bfloat16 or "
            "fewer --seeds; the attacks "
            f"{sizes.attacks / 1e9:.1f} GB: fewer values of the sensitive column"
        )
