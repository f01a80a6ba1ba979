"""Packs ragged clients into equal lanes: NumPy, once, before anything is traced.

Clients of different sizes take different numbers of local steps. Instead of padding them
all to the largest they are laid one after another into `L` lanes of nearly equal length
(`packing`). At every step each lane trains one mini-batch of whichever client holds it;
where a client ends, its message is collected and its lane starts afresh from the
server's model. `stacking` joins the schedules of several seeds.

The tables only say *which* rows by position; the shuffle that turns positions into rows
happens inside the compiled round (`rounds`).

With Poisson batches, which differential privacy asks for, a client takes as many steps
as before, and each of its rows is in each batch with probability 1 / steps per epoch,
independently of all else; the tables then only say who trains when. A batch has room for
all but 1e-12 of the draws, which adds at most that per step to the delta of a guarantee.
"""

import dataclasses
import numbers
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import numpy as np
from scipy import stats

from fljax import accelerators, memory, packing, participation
from fljax.packing import Slots
from fljax.types import Array

Weights = Literal["rows", "uniform"]
_COPIES = 3  # of the tables: here, joined with those of other seeds, on the devices
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
    batch_size: int = _static("B, rows of a mini-batch; if Poisson, about their mean")
    capacity: int = _static("places of the batch axis: B, or more if Poisson")
    num_epochs: int = _static("E, shuffles per round")
    max_rows: int = _static("rows of the largest client")
    shuffle: bool = _static("reshuffle each local epoch; else keep the stored order")
    poisson: bool = _static("batches are drawn row by row; then nothing is shuffled")
    drop_last: bool = _static(
        "rows behind the last full batch of an epoch are left out"
    )

    @property
    def sampling_rate(self) -> Array:
        """`[C + 1]` probability of each of a client's rows to be in a Poisson batch."""
        return packing.sampling_rate(self.sizes, self.batch_size, self.drop_last)

    @property
    def local_steps(self) -> np.ndarray:
        """`[C]` steps of each client in a round; 0 of one that never takes part."""
        return packing.most_steps(self.participants, self.slots, len(self.sizes) - 1)

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
    sizes: Sequence[int] | np.ndarray,
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
    drop_last: bool = False,
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
      lanes: lanes side by side; None chooses for the kind of device. On a CPU a run with
        at least two lanes replays bit for bit on any other number of at least two.
      weights: 'rows' weighs a client by its rows, 'uniform' equally.
      shuffle: draw a new order of its rows in every local epoch.
      poisson: include each of its `n` rows in each batch independently with probability
        `1 / ceil(n / batch_size)`; `shuffle` then has no effect.
      drop_last: leave out the rows behind the last full batch of an epoch, others in each
        shuffle; of Poisson batches one less in an epoch, and larger ones.
      record_rounds: rounds that the transcript keeps; None keeps all.
      record_clients: clients that the transcript keeps; None keeps all.

    Returns:
      A `Schedule` of NumPy arrays.

    Raises:
      ValueError: for empty clients, or numbers out of range.
      MemoryError: the tables of so many rounds would fill the memory.
    """
    if len(sizes) and not np.issubdtype(np.asarray(sizes).dtype, np.integer):
        raise ValueError(f"sizes: expected numbers of rows, got {sizes}")
    rows = np.asarray(sizes, np.int32)
    _check(rows, num_rounds, batch_size, epochs, steps, lanes, weights)
    num_clients = len(rows)
    batch = int(min(batch_size or rows.max(), rows.max()))
    present = participation.table(participants, num_clients, num_rounds)
    drop_last = drop_last and batch_size is not None
    if drop_last and rows.min() < (batch_size or 0):
        raise ValueError(
            f"drop_last: expected clients with batch_size={batch_size} rows or more, one "
            f"has {rows.min()}"
        )
    own = np.asarray(packing.steps_per_round(rows, batch, epochs, steps, drop_last))
    num_lanes = lanes or packing.choose_lanes(present, own, accelerators.used())
    packed = packing.pack(present, own, num_lanes)
    local = f"{steps} local steps" if steps else f"{epochs} local epochs"
    _check_room(packed, num_rounds, local)
    recorded, clients, slot_of = _recording(
        present, num_rounds, record_rounds, record_clients
    )
    weight = rows.astype(np.float32) if weights == "rows" else np.ones(num_clients)
    end_steps, ends = _client_ends(packed, weight, slot_of, clients.shape[1])
    passes = -(-own // packing.batches_per_epoch(rows, batch, drop_last))
    return Schedule(
        sizes=np.append(rows, 0).astype(np.int32),
        participants=_participant_table(present),
        slots=packing.slot_tables(packed, rows, batch, drop_last),
        client_ends=ends,
        end_steps=end_steps,
        record=_record_table(recorded, num_rounds),
        recorded_rounds=recorded,
        recorded_clients=clients,
        batch_size=batch,
        capacity=_capacity(rows, batch, drop_last) if poisson else batch,
        num_epochs=int(passes[present.any(axis=0)].max(initial=1)),
        max_rows=int(rows.max()),
        shuffle=shuffle,
        poisson=poisson,
        drop_last=drop_last,
    )


def _capacity(rows: np.ndarray, batch: int, drop_last: bool) -> int:
    """Places that a Poisson batch of any client needs."""
    rate = packing.sampling_rate(rows, batch, drop_last)
    quantile = stats.binom.isf(_OVERFLOW, rows, rate)
    return int(max(quantile.max(), 1))


def _check(sizes, num_rounds, batch_size, epochs, steps, lanes, weights) -> None:
    if sizes.ndim != 1 or not len(sizes) or sizes.min() < 1:
        raise ValueError(f"sizes: every client needs at least 1 row, got {sizes}")
    positive = {
        "num_rounds": num_rounds, "batch_size": batch_size, "epochs": epochs, "steps": steps,
        "lanes": lanes,
    }  # fmt: skip
    for name, value in positive.items():
        if value is None:
            continue
        if not isinstance(value, numbers.Integral) or value < 1:
            raise ValueError(f"{name} must be an integer >= 1, got {value}")
    if weights not in ("rows", "uniform"):
        raise ValueError(f"weights must be 'rows' or 'uniform', got {weights!r}")


def _check_room(packed: packing.Packing, num_rounds: int, local: str) -> None:
    """Refuses tables that would fill the memory, before they are made."""
    tables, lanes = packed.length.shape
    entries = float(tables) * packed.width * lanes * len(Slots._fields)
    needed, free = 4.0 * (entries + 2 * packed.present.size), memory.available()
    if _COPIES * needed > free:
        most = f"num_rounds={num_rounds}" if tables > packed.width else local
        raise MemoryError(
            f"{most}: a schedule of so many needs about "
            f"{_COPIES * needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free; "
            "expected fewer rounds, local steps or clients"
        )


def _recording(present, num_rounds, record_rounds, record_clients):
    """Recorded rounds `[Q]` and clients `[Q, K]`, and the slot of each client `[T, C]`."""
    num_tables, num_clients = present.shape
    rounds = _chosen("record_rounds", record_rounds, num_rounds)
    wanted = _chosen("record_clients", record_clients, num_clients)
    kept = present & np.isin(np.arange(num_clients), wanted)
    num_slots = int(kept.sum(axis=1).max())
    slot_of = np.where(kept, kept.cumsum(axis=1) - 1, num_slots)
    of_table = np.full((num_tables, num_slots), -1, np.int32)
    table, client = np.nonzero(kept)
    of_table[table, slot_of[table, client]] = client
    return rounds.astype(np.int32), of_table[rounds % num_tables], slot_of


def _chosen(name: str, given, stop: int) -> np.ndarray:
    """Numbers below `stop`, increasing; all of them for None."""
    if given is None:
        return np.arange(stop)
    values = np.unique(np.asarray(given))
    if values.size and not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"{name} must be integers, got {values.dtype} {values}")
    if values.size and (values[0] < 0 or values[-1] >= stop):
        raise ValueError(f"{name} must lie in [0, {stop}), got {values}")
    return values.astype(np.int64)


def _client_ends(packed, weight, slot_of, num_slots: int):
    """End steps `[G]`, and who is done at each `[T, G, L]`."""
    round_, client = np.nonzero(packed.present)
    lane, begin = packed.lane[round_, client], packed.begin[round_, client]
    end_steps, at = np.unique(begin + packed.steps[client], return_inverse=True)
    shape = (len(packed.present), len(end_steps), packed.length.shape[1])
    ends = ClientEnds(
        weight=np.zeros(shape, np.float32),
        done=np.zeros(shape, bool),
        slot=np.full(shape, num_slots, np.int32),
    )
    ends.weight[round_, at, lane] = weight[client]
    ends.done[round_, at, lane] = True
    ends.slot[round_, at, lane] = slot_of[round_, client]
    return end_steps.astype(np.int32), ends


def _participant_table(present: np.ndarray) -> np.ndarray:
    """Ids `[T, M]` of those who take part, `C` behind the last."""
    counts = present.sum(axis=1)
    table = np.full((len(present), max(1, counts.max())), present.shape[1], np.int32)
    table[np.arange(table.shape[1]) < counts[:, None]] = np.nonzero(present)[1]
    return table


def _record_table(rounds: np.ndarray, num_rounds: int) -> np.ndarray:
    table = np.full(num_rounds, len(rounds), np.int32)
    table[rounds] = np.arange(len(rounds))
    return table
