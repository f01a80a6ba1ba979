"""Packs ragged clients into equal lanes: NumPy, once, before anything is traced.

Clients of different sizes take different numbers of local steps. Padding them all to
the largest wastes most of the work, so they are laid one after another into `L` lanes of
nearly equal length (`packing`). At every step each lane trains one mini-batch of
whichever client holds it. Where a client ends, its message is collected and
its lane starts afresh from the server's model. With as many lanes as equal clients this
is a plain vmap over clients. `stacking` joins the schedules of several seeds.

The tables only say *which* rows by position; the shuffle that turns positions into rows
happens inside the compiled round (`rounds`).

With Poisson batches, which differential privacy asks for, a client takes as many steps
as before, and each of its rows is in each batch with probability 1 / steps per epoch,
independently of all else; the tables then only say who trains when. A batch has room for
all but 1e-12 of the draws; what does not fit is left out, which adds at most 1e-12 per
step to the delta of a privacy guarantee.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import numpy as np
from scipy import stats

from fljax import packing
from fljax.packing import Slots
from fljax.types import Array

Weights = Literal["rows", "uniform"]
_MAX_LANES = 16  # wider gains nothing on a CPU: the lanes' params leave the cache
_OCCUPANCY = 0.98  # the widest packing that wastes no more than this is good enough
_OVERFLOW = 1e-12  # probability of a Poisson batch with more rows than there are places


class ClientEnds(NamedTuple):
    """Who is done at each end step; leaves `[T, G, L]`.

    Attributes:
      weight: float32 aggregation weight, 0 where the lane goes on.
      done: bool, the lane's client ends here.
      slot: int32 place of its message in the transcript, `K` where it is not recorded.
    """

    weight: Array
    done: Array
    slot: Array


def _static(help_: str):
    return dataclasses.field(metadata={"static": True, "help": help_})


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """Tables that drive a training; `T` is 1 when all rounds are alike, else `R`.

    Attributes:
      sizes: `[C + 1]` int32 rows of each client; the last entry is a phantom without
        rows that fills empty places.
      participants: `[T, M]` int32 client ids, `C` for an empty place.
      slots: `[T, S, L]` tables.
      client_ends: `[T, G, L]` tables.
      end_steps: `[G]` int32 steps after which some client is done, shared by all rounds.
      record: `[R]` int32 row of each round in the transcript, past its end if none.
      recorded_rounds: `[Q]` int32.
      recorded_clients: `[Q, K]` int32, -1 for an empty slot.
    """

    sizes: Array
    participants: Array
    slots: Slots
    client_ends: ClientEnds
    end_steps: Array
    record: Array
    recorded_rounds: Array
    recorded_clients: Array
    batch_size: int = _static(
        "B, rows in a mini-batch; if Poisson, their mean or a bit more"
    )
    capacity: int = _static("places of the batch axis: B, or more if Poisson")
    num_epochs: int = _static("E, shuffles per round")
    max_rows: int = _static("rows of the largest client")
    shuffle: bool = _static("reshuffle each local epoch; else keep the stored order")
    poisson: bool = _static("batches are drawn row by row; then nothing is shuffled")

    @property
    def sampling_rate(self) -> Array:
        """`[C + 1]` probability of each of a client's rows to be in a Poisson batch."""
        return _sampling_rate(self.sizes, self.batch_size)

    @property
    def num_rounds(self) -> int:
        return self.record.shape[-1]

    @property
    def num_lanes(self) -> int:
        return self.slots.count.shape[-1]

    @property
    def occupancy(self) -> float:
        """Share of the slots that hold real work."""
        return float((np.asarray(self.slots.count) > 0).mean())


def build(
    sizes: Sequence[int],
    *,
    num_rounds: int,
    batch_size: int | None,
    participants: Sequence[np.ndarray] | None = None,
    epochs: int = 1,
    steps: int | None = None,
    lanes: int | None = None,
    weights: Weights = "rows",
    shuffle: bool = True,
    poisson: bool = False,
    record_rounds: Sequence[int] | None = None,
    record_clients: Sequence[int] | None = None,
) -> Schedule:
    """Builds the tables of a whole training.

    Args:
      sizes: rows of each client.
      num_rounds: communication rounds `R`.
      batch_size: rows in a mini-batch, the last of an epoch being smaller; None takes
        all of a client's rows at once.
      participants: client ids of each round (`participation`); a single entry serves
        for all rounds; None means everyone.
      epochs: local epochs `E`.
      steps: local steps instead of epochs: an epoch is cut short or followed by more.
      lanes: lanes side by side; None chooses. A run with at least two lanes replays
        bit for bit on any other number of at least two.
      weights: 'rows' weighs a client by its rows, 'uniform' equally.
      shuffle: draw a new order of its rows in every local epoch.
      poisson: include each of its `n` rows in each batch independently with probability
        `1 / ceil(n / batch_size)`; `shuffle` then has no effect.
      record_rounds: rounds that the transcript keeps; None keeps all.
      record_clients: clients that the transcript keeps; None keeps all.

    Returns:
      A `Schedule` of NumPy arrays.

    Raises:
      ValueError: for empty clients, or numbers out of range.
    """
    rows = np.asarray(sizes, np.int32)
    _check(rows, num_rounds, batch_size, epochs, steps, lanes, weights)
    num_clients = len(rows)
    batch = int(rows.max()) if batch_size is None else min(batch_size, rows.max())
    chosen = _participants(participants, num_clients, num_rounds)

    plans = [
        [
            packing.job(participant_index, int(rows[c]), batch, epochs, steps)
            for participant_index, c in enumerate(ids)
        ]
        for ids in chosen
    ]
    most = max(1, *(len(ids) for ids in chosen))
    num_lanes = lanes or _choose_lanes(plans, most)
    packed = [packing.pack(jobs, num_lanes) for jobs in plans]
    recorded, clients, slot_of = _recording(
        chosen, num_rounds, num_clients, record_rounds, record_clients
    )
    weight = rows.astype(np.float32) if weights == "rows" else np.ones(num_clients)
    slots, ends = packing.slot_tables(packed, num_lanes)
    end_steps = np.flatnonzero((ends >= 0).any(axis=(0, 2))) + 1
    return Schedule(
        sizes=np.append(rows, 0).astype(np.int32),
        participants=_padded(chosen, most, num_clients),
        slots=slots,
        client_ends=_client_ends(
            ends[:, end_steps - 1], chosen, weight, slot_of, clients.shape[1]
        ),
        end_steps=end_steps.astype(np.int32),
        record=_record_table(recorded, num_rounds),
        recorded_rounds=recorded,
        recorded_clients=clients,
        batch_size=int(batch),
        capacity=_capacity(rows, int(batch)) if poisson else int(batch),
        num_epochs=1 + max((int(j.epoch.max()) for p in plans for j in p), default=0),
        max_rows=int(rows.max()),
        shuffle=shuffle,
        poisson=poisson,
    )


def _sampling_rate(sizes, batch: int):
    return 1 / packing.batches_per_epoch(sizes, batch).clip(1)


def _capacity(rows: np.ndarray, batch: int) -> int:
    """Places that a Poisson batch of any client needs."""
    quantile = stats.binom.isf(_OVERFLOW, rows, _sampling_rate(rows, batch))
    return int(max(quantile.max(), 1))


def _participants(given, num_clients: int, num_rounds: int) -> list[np.ndarray]:
    if given is None:
        return [np.arange(num_clients)]
    chosen = [np.asarray(ids, np.int64) for ids in given]
    if len(chosen) not in (1, num_rounds):
        raise ValueError(f"participants: 1 or {num_rounds} rounds, got {len(chosen)}")
    for ids in chosen:
        known = (ids >= 0) & (ids < num_clients)
        if ids.ndim != 1 or not known.all() or len(np.unique(ids)) < len(ids):
            raise ValueError(
                f"participants: expected distinct clients in [0, {num_clients}), "
                f"got {ids}"
            )
    return chosen


def _check(sizes, num_rounds, batch_size, epochs, steps, lanes, weights) -> None:
    if sizes.ndim != 1 or not len(sizes) or sizes.min() < 1:
        raise ValueError(f"sizes: every client needs at least 1 row, got {sizes}")
    positive = {
        "num_rounds": num_rounds, "batch_size": batch_size, "epochs": epochs, "steps": steps,
        "lanes": lanes,
    }  # fmt: skip
    for name, value in positive.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} must be >= 1, got {value}")
    if weights not in ("rows", "uniform"):
        raise ValueError(f"weights must be 'rows' or 'uniform', got {weights!r}")


def _choose_lanes(plans, most: int) -> int:
    """Widest packing with nearly all slots in use, judged by the first few rounds."""
    sample = plans[:8]

    def occupancy(num_lanes):
        lanes = [packing.pack(jobs, num_lanes) for jobs in sample]
        steps = [[sum(len(j.count) for j in lane) for lane in each] for each in lanes]
        return np.sum(steps) / max(np.max(steps) * num_lanes * len(sample), 1)

    widths = range(max(1, min(_MAX_LANES, most)), 0, -1)
    return next(
        (width for width in widths if occupancy(width) >= _OCCUPANCY),
        max(widths, key=occupancy),
    )


def _recording(chosen, num_rounds, num_clients, record_rounds, record_clients):
    """Recorded rounds `[Q]`, clients `[Q, K]`, and a slot per (table, participant_index)."""
    rounds = np.arange(num_rounds) if record_rounds is None else np.unique(
        np.asarray(record_rounds, np.int64)
    )  # fmt: skip
    wanted = np.arange(num_clients) if record_clients is None else np.unique(
        np.asarray(record_clients, np.int64)
    )  # fmt: skip
    for name, values, stop in (
        ("record_rounds", rounds, num_rounds),
        ("record_clients", wanted, num_clients),
    ):
        if len(values) and (values[0] < 0 or values[-1] >= stop):
            raise ValueError(f"{name} must lie in [0, {stop}), got {values}")
    kept = [np.isin(round_, wanted) for round_ in chosen]
    num_slots = max(int(k.sum()) for k in kept)
    slot_of = [np.where(k, np.cumsum(k) - 1, num_slots) for k in kept]
    clients = np.full((len(rounds), num_slots), -1, np.int32)
    for row, round_ in enumerate(rounds):
        table = round_ % len(chosen)
        members = chosen[table][kept[table]]
        clients[row, : len(members)] = members
    return rounds.astype(np.int32), clients, slot_of


def _client_ends(ends, chosen, weight, slot_of, num_slots: int) -> ClientEnds:
    client_ends = ClientEnds(
        weight=np.zeros(ends.shape, np.float32),
        done=ends >= 0,
        slot=np.full(ends.shape, num_slots, np.int32),
    )
    for table, indices in enumerate(ends):
        done = indices >= 0
        client_ends.weight[table][done] = weight[chosen[table][indices[done]]]
        client_ends.slot[table][done] = slot_of[table][indices[done]]
    return client_ends


def _padded(chosen, width: int, fill: int) -> np.ndarray:
    table = np.full((len(chosen), width), fill, np.int32)
    for row, members in enumerate(chosen):
        table[row, : len(members)] = members
    return table


def _record_table(rounds: np.ndarray, num_rounds: int) -> np.ndarray:
    table = np.full(num_rounds, len(rounds), np.int32)
    table[rounds] = np.arange(len(rounds))
    return table
