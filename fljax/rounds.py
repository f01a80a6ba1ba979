"""Federated rounds: FedAvg and its relatives as one pure function over rounds.

`start` makes the run's state, `advance` carries it to a given round inside a single
compiled loop. Both are pure and vmap over seeds and hyper-parameters:

    jit( vmap seeds ( loop rounds ( vmap lanes of clients ( loop local steps ))))

Algorithm 1 of Diana et al. (AAAI-25): the server sends its model, each participant
trains on her own rows and returns, the server averages. The average of the deltas
(sent minus returned) is handed to an optax optimiser as if it were a gradient;
`optax.sgd(1.0)` is plain FedAvg.

Randomness: everything that client c draws in round t comes from
`fold_in(fold_in(key, t), c)`: one stream per local epoch for the order of her rows, one
per local step for her training, one per local step for the rows of a Poisson batch, one
for her message and one for what the server makes of it. Nothing else enters, so any
round of any client can be replayed alone.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from fljax import local as local_lib
from fljax.schedule import Schedule
from fljax.types import Batch, EncodeFn, Key, Params, Rows, Sender, Transcript

_PACKED_SORT_ROWS = 2**14  # leaves at least 18 random bits beside a row's position
_LAST = np.uint32(2**32 - 1)  # sorts padding behind every row
_SHUFFLE, _TRAIN, _SAMPLE, _MESSAGE, _RECEIVE = range(5)  # streams of one client


class ServerState(NamedTuple):
    """The server between two rounds.

    Attributes:
      params: current global model.
      opt_state: state of the server's optimiser.
      round: [] int32, rounds done.
    """

    params: Params
    opt_state: optax.OptState
    round: jax.Array


class Run(NamedTuple):
    """A training so far.

    Attributes:
      server: state after the rounds done.
      transcript: recorded messages; rows of rounds not yet done are zeros.
      loss: `[R]` weighted mean of the participants' local training losses.
    """

    server: ServerState
    transcript: Transcript
    loss: jax.Array


# `jax.vmap` over runs: `in_axes` of a `Run`, and `out_axes` of what `advance` returns. All
# runs are in the same round. A loop whose rounds could differ would keep the transcript of
# before each round, to choose between the two.
AXES = Run(ServerState(0, 0, None), 0, 0)


def start(
    params: Params, schedule: Schedule, server_optimiser: optax.GradientTransformation
) -> Run:
    """State before the first round, with an empty transcript."""
    recorded, num_slots = schedule.recorded_clients.shape
    transcript = Transcript(
        round=jnp.asarray(schedule.recorded_rounds),
        client=jnp.asarray(schedule.recorded_clients),
        params=_zeros(params, recorded),
        delta=_zeros(params, recorded, num_slots),
    )
    server = ServerState(
        params, server_optimiser.init(params), jnp.zeros((), jnp.int32)
    )
    return Run(server, transcript, jnp.zeros(schedule.record.shape))


def advance(
    key: Key,
    run: Run,
    rows: Rows,
    schedule: Schedule,
    stop: jax.Array | int,
    *,
    local: local_lib.LocalUpdate,
    server_optimiser: optax.GradientTransformation,
    receive: EncodeFn | None = None,
) -> Run:
    """Runs the rounds from `run.server.round` up to `stop` (excluded).

    Args:
      key: the run's key, the same in every call; each round folds its number in.
      run: state from `start` or from an earlier call.
      rows: all clients' rows, flat `[N, ...]` and sorted by client.
      schedule: who trains when.
      stop: [] round to stop before, at most all rounds of the schedule; may be traced,
        so that chunks share one program.
      local: the clients' algorithm.
      server_optimiser: applied to the weighted mean delta.
      receive: what the server makes of each message before the mean, e.g. that of a
        defense; the transcript keeps the message as it was sent.

    Returns:
      The `Run` after round `stop - 1`.
    """

    def round_(_, run):
        return _round(key, run, rows, schedule, local, server_optimiser, receive)

    schedule, rows = jax.tree.map(jnp.asarray, (schedule, rows))
    stop = jnp.minimum(stop, schedule.num_rounds)
    return lax.fori_loop(run.server.round, stop, round_, run)


def _round(key, run, rows, schedule, local, server_optimiser, receive) -> Run:
    server, transcript, loss = run
    t = server.round
    row = schedule.record[t]
    sent = jax.tree.map(
        lambda leaf, new: _put(leaf, row, new), transcript.params, server.params
    )
    transcript = transcript._replace(params=sent)
    delta, round_loss, sent_back = _train_clients(
        jax.random.fold_in(key, t), server.params, rows, schedule, t, local, receive,
        transcript.delta,
    )  # fmt: skip
    updates, opt_state = server_optimiser.update(delta, server.opt_state, server.params)
    params = optax.apply_updates(server.params, updates)
    return Run(
        ServerState(params, opt_state, t + 1),
        transcript._replace(delta=sent_back),
        loss.at[t].set(round_loss),
    )


def _train_clients(key, sent, rows, schedule, t, local, receive, deltas):
    """Round t of all participants: mean delta, mean loss, deltas with its row filled."""
    table, row = t % schedule.participants.shape[0], schedule.record[t]
    slots = jax.tree.map(lambda leaf: leaf[table], schedule.slots)
    finish = jax.tree.map(lambda leaf: leaf[table], schedule.finish)
    clients = schedule.participants[table]
    client_keys = jax.vmap(jax.random.fold_in, (None, 0))(key, clients)
    train_keys = _fold_in(client_keys, _TRAIN)
    round_of_all = jnp.full(schedule.num_lanes, t)
    index, real = _batches(client_keys, clients, schedule, slots)
    fresh = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (schedule.num_lanes, *leaf.shape)),
        local.init(sent),
    )

    def train_step(s, lanes):
        slot = jax.tree.map(lambda leaf: leaf[s], slots)
        batch = jax.tree.map(lambda leaf: leaf[index[s]], rows)
        batch = Batch(batch.x, batch.y, real[s], clients[slot.seat], round_of_all)
        step_keys = jax.vmap(jax.random.fold_in)(train_keys[slot.seat], slot.step)
        return jax.vmap(local.step, (0, 0, None, 0))(step_keys, lanes, sent, batch)

    def segment(carry, xs):
        lanes, total, deltas = carry
        (begin, end), done = xs
        lanes = lax.fori_loop(begin, end, train_step, lanes)
        seat = slots.seat[end - 1]  # whoever is done at this break
        sender, keys = Sender(clients[seat], round_of_all), client_keys[seat]
        message, received = _messages(keys, lanes, sent, sender, local, receive)
        share = jax.tree.map(lambda leaf: _weighted_sum(done.weight, leaf), received)
        total = jax.tree.map(jnp.add, total, share)
        deltas = jax.tree.map(
            lambda leaf, new: _put(leaf, (row, done.slot), new), deltas, message.delta
        )
        lanes = jax.tree.map(lambda f, l: _where(done.done, f, l), fresh, lanes)
        return (lanes, total, deltas), None

    ends = schedule.breaks
    bounds = (jnp.concatenate([jnp.zeros(1, ends.dtype), ends])[:-1], ends)
    zero = local_lib.Message(jax.tree.map(jnp.zeros_like, sent), jnp.zeros(()))
    (_, total, deltas), _ = lax.scan(segment, (fresh, zero, deltas), (bounds, finish))
    weight = jnp.sum(finish.weight)
    mean = jax.tree.map(lambda leaf: leaf / jnp.where(weight > 0, weight, 1), total)
    return mean.delta, mean.loss, deltas


def _messages(keys, lanes, sent, sender, local, receive):
    """Messages of all lanes as they are sent, and as the server takes them."""
    message = jax.vmap(local.final, (0, 0, None, 0))(
        _fold_in(keys, _MESSAGE), lanes, sent, sender
    )
    if receive is None:
        return message, message
    delta = jax.vmap(receive)(_fold_in(keys, _RECEIVE), message.delta, sender)
    return message, message._replace(delta=delta)


def _batches(client_keys, clients, schedule, slots):
    """Rows of every batch `[S, L, B]`, and which of them are real.

    Padding points at some row of the client.
    """
    sizes = schedule.sizes[clients]
    offsets = (jnp.cumsum(schedule.sizes) - schedule.sizes)[clients]
    last = sizes[slots.seat][..., None] - 1
    if schedule.poisson:
        keys = _fold_in(client_keys, _SAMPLE)
        rates = jnp.asarray(schedule.sampling_rate, jnp.float32)[clients]
        position = _poisson_positions(keys, rates, sizes, slots, schedule.capacity)
        real = (position <= last) & (slots.count > 0)[..., None]
    else:
        keys = _fold_in(client_keys, _SHUFFLE)
        within = jnp.arange(schedule.batch_size)[None, None, :]
        position = _ordered_positions(keys, sizes, schedule, slots, within)
        real = within < slots.count[..., None]
    return offsets[slots.seat][..., None] + jnp.minimum(position, last), real


def _ordered_positions(keys, sizes, schedule, slots, within):
    """Positions `[S, L, B]` in each client's rows: stored or shuffled, epoch by epoch."""
    position = slots.start[..., None] + within
    position = jnp.minimum(position, schedule.max_rows - 1)
    if not schedule.shuffle:
        return position
    epochs = jnp.arange(schedule.num_epochs)
    order = jax.vmap(
        lambda key, size: jax.vmap(
            lambda e: _permutation(jax.random.fold_in(key, e), size, schedule.max_rows)
        )(epochs)
    )(keys, sizes)
    return order[slots.seat[..., None], slots.epoch[..., None], position]


def _poisson_positions(keys, rates, sizes, slots, capacity: int):
    """Positions `[S, L, B]` of rows drawn independently, beyond the last for no row."""

    def one(seat, step):
        key = jax.random.fold_in(keys[seat], step)
        return _poisson_sample(key, rates[seat], sizes[seat], capacity)

    return jax.vmap(jax.vmap(one))(slots.seat, slots.step)


def _poisson_sample(key, rate, size, capacity: int):
    """Increasing positions `[capacity]`, each of `range(size)` with probability `rate`.

    The gaps between independently drawn positions are geometric, so that the work is
    that of the rows drawn and not of all. Positions from `size` on stand for no row.
    More capacity appends positions and changes none. The rounding of 23 random bits per
    gap moves the rate by less than 1e-5 of itself.
    """
    uniform = 1 - jax.random.uniform(key, (capacity,))  # > 0: the logarithm is finite
    gap = 1 + jnp.floor(jnp.log(uniform) / jnp.log1p(-rate))
    gap = jnp.minimum(gap, size + 1).astype(jnp.int32)  # sums stay in range
    return jnp.cumsum(gap) - 1


def _permutation(key, size, max_rows: int):
    """Random order of `range(size)` in the first `size` of `[max_rows]` places.

    Rows are sorted by random bits, of which the lowest make room for the row's own
    position: sorting one word is several times faster on a CPU than sorting pairs.
    Where the remaining bits of two rows agree they keep their stored order. The result
    depends on `key` and `size` alone, not on `max_rows`.
    """
    bits = jax.random.bits(key, (max_rows,))
    position = jnp.arange(max_rows, dtype=jnp.uint32)
    width = 32 - lax.clz(jnp.maximum(size - 1, 0).astype(jnp.uint32))
    low = (jnp.uint32(1) << width) - 1
    bits = jnp.where(size > _PACKED_SORT_ROWS, bits, bits & ~low)
    if max_rows > _PACKED_SORT_ROWS:
        bits = jnp.where(position < size, bits, _LAST)
        return lax.sort((bits, position.astype(jnp.int32)), num_keys=1)[1]
    word = jnp.where(position < size, bits | position, _LAST)
    return (lax.sort(word) & low).astype(jnp.int32)


def _fold_in(keys, number: int):
    return jax.vmap(jax.random.fold_in, (0, None))(keys, number)


def _weighted_sum(weight, leaf):
    # `where`, for an idle lane may hold anything.
    weight = weight.reshape(-1, *[1] * (leaf.ndim - 1))
    return jnp.sum(jnp.where(weight > 0, weight * leaf, 0), axis=0)


def _where(condition, yes, no):
    return jnp.where(condition.reshape(-1, *[1] * (yes.ndim - 1)), yes, no)


def _zeros(params, *axes: int):
    return jax.tree.map(
        lambda leaf: jnp.zeros((*axes, *leaf.shape), leaf.dtype), params
    )


def _put(leaf, where, value):
    """Writes into a transcript, which may be empty; what lies outside is dropped."""
    return leaf.at[where].set(value, mode="drop") if leaf.size else leaf
