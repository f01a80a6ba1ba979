"""Packs ragged clients into equal lanes: NumPy, once, before anything is traced.

Clients of different sizes take different numbers of local steps. Padding them all to
the largest wastes most of the work, so they are laid one after another into `L` lanes of
nearly equal length (`packing`). At every step each lane trains one mini-batch of
whichever client holds it. Where a client ends,
a `break`, her message is collected and her lane starts afresh from the server's model.
With as many lanes as equal clients this is a plain vmap over clients.

The tables only say *which* rows by position; the shuffle that turns positions into rows
happens inside the compiled round (`rounds`).
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import numpy as np

from fljax import packing
from fljax.packing import Slots
from fljax.types import Array

Weights = Literal["rows", "uniform"]
_MAX_LANES = 16  # wider gains nothing on a CPU: the lanes' params leave the cache
_OCCUPANCY = 0.98  # the widest packing that wastes no more than this is good enough


class Finish(NamedTuple):
    """Who is done at each break; leaves `[T, G, L]`.

    Attributes:
      weight: float32 aggregation weight, 0 where the lane goes on.
      done: bool, the lane's client ends here.
      slot: int32 place of her message in the transcript, `K` where it is not recorded.
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
        rows that fills empty seats.
      participants: `[T, M]` int32 client ids, `C` for an empty seat.
      slots: `[T, S, L]` tables.
      finish: `[T, G, L]` tables.
      breaks: `[G]` int32 steps after which some client is done, shared by all rounds.
      record: `[R]` int32 row of each round in the transcript, past its end if none.
      recorded_rounds: `[Q]` int32.
      recorded_clients: `[Q, K]` int32, -1 for an empty slot.
    """

    sizes: Array
    participants: Array
    slots: Slots
    finish: Finish
    breaks: Array
    record: Array
    recorded_rounds: Array
    recorded_clients: Array
    batch_size: int = _static("B, rows in a mini-batch")
    num_epochs: int = _static("E, shuffles per round")
    max_rows: int = _static("rows of the largest client")
    shuffle: bool = _static("reshuffle each local epoch; else keep the stored order")

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
      lanes: lanes side by side; None chooses.
      weights: 'rows' weighs a client by her rows, 'uniform' equally.
      shuffle: draw a new order of her rows in every local epoch.
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
    chosen = [np.arange(num_clients)] if participants is None else list(participants)
    if len(chosen) not in (1, num_rounds):
        raise ValueError(f"participants: 1 or {num_rounds} rounds, got {len(chosen)}")

    plans = [
        [packing.job(seat, rows[c], batch, epochs, steps) for seat, c in enumerate(ids)]
        for ids in chosen
    ]
    most = max(len(round_) for round_ in chosen)
    num_lanes = max(1, min(lanes, most)) if lanes else _choose_lanes(plans, most)
    packed = [packing.pack(jobs, num_lanes) for jobs in plans]
    recorded, clients, slot_of = _recording(
        chosen, num_rounds, num_clients, record_rounds, record_clients
    )
    weight = rows.astype(np.float32) if weights == "rows" else np.ones(num_clients)
    slots, ends = packing.slot_tables(packed, num_lanes)
    breaks = np.flatnonzero((ends >= 0).any(axis=(0, 2))) + 1
    return Schedule(
        sizes=np.append(rows, 0).astype(np.int32),
        participants=_padded(chosen, most, num_clients),
        slots=slots,
        finish=_finish(ends[:, breaks - 1], chosen, weight, slot_of, clients.shape[1]),
        breaks=breaks.astype(np.int32),
        record=_record_table(recorded, num_rounds),
        recorded_rounds=recorded,
        recorded_clients=clients,
        batch_size=int(batch),
        num_epochs=1 + max((int(j.epoch.max()) for p in plans for j in p), default=0),
        max_rows=int(rows.max()),
        shuffle=shuffle,
    )


def stack(schedules: Sequence[Schedule]) -> tuple[Schedule, Schedule]:
    """Joins the schedules of several runs (seeds) for one vmapped program.

    Clients, lanes and recording must agree; numbers of rows and steps may differ.

    Returns:
      The joined `Schedule` and, in the same shape, the `in_axes` for `jax.vmap`: the
      breaks are shared, so that loop bounds stay common to all runs.

    Raises:
      ValueError: if the runs do not have the same clients and rounds.
    """
    for field in ("participants", "record", "recorded_clients"):
        if len({getattr(s, field).shape for s in schedules}) > 1:
            raise ValueError(f"schedules differ in the shape of {field!r}")
    length = max(s.slots.count.shape[1] for s in schedules)
    breaks = np.unique(np.concatenate([s.breaks for s in schedules]))

    def pad_slots(leaf):
        return np.pad(leaf, ((0, 0), (0, length - leaf.shape[1]), (0, 0)))

    def at_breaks(leaf, own, fill):
        wide = np.full((leaf.shape[0], len(breaks), leaf.shape[2]), fill, leaf.dtype)
        wide[:, np.searchsorted(breaks, own)] = leaf
        return wide

    num_slots = schedules[0].recorded_clients.shape[1]
    idle = (0, False, num_slots)  # weight, done, slot
    common = {
        "breaks": breaks.astype(np.int32),
        "batch_size": max(s.batch_size for s in schedules),
        "num_epochs": max(s.num_epochs for s in schedules),
        "max_rows": max(s.max_rows for s in schedules),
    }
    alike = [
        dataclasses.replace(
            s,
            slots=jax.tree.map(pad_slots, s.slots),
            finish=Finish(
                *(at_breaks(leaf, s.breaks, fill)
                  for leaf, fill in zip(s.finish, idle, strict=True))
            ),
            **common,
        )
        for s in schedules
    ]  # fmt: skip
    joined = jax.tree.map(lambda *leaves: np.stack(leaves), *alike)
    axes = jax.tree.map(lambda _: 0, joined)
    return (
        dataclasses.replace(joined, breaks=common["breaks"]),
        dataclasses.replace(axes, breaks=None),
    )


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
    """Recorded rounds `[Q]`, clients `[Q, K]`, and a slot per (table, seat)."""
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


def _finish(ends, chosen, weight, slot_of, num_slots: int) -> Finish:
    finish = Finish(
        weight=np.zeros(ends.shape, np.float32),
        done=ends >= 0,
        slot=np.full(ends.shape, num_slots, np.int32),
    )
    for table, seats in enumerate(ends):
        done = seats >= 0
        finish.weight[table][done] = weight[chosen[table][seats[done]]]
        finish.slot[table][done] = slot_of[table][seats[done]]
    return finish


def _padded(chosen, width: int, fill: int) -> np.ndarray:
    table = np.full((len(chosen), width), fill, np.int32)
    for row, members in enumerate(chosen):
        table[row, : len(members)] = members
    return table


def _record_table(rounds: np.ndarray, num_rounds: int) -> np.ndarray:
    table = np.full(num_rounds, len(rounds), np.int32)
    table[rounds] = np.arange(len(rounds))
    return table
