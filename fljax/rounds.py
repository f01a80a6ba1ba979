"""Federated rounds: FedAvg and its relatives as one pure function over rounds.

`start` makes the run's state, `advance` carries it to a given round inside a single
compiled loop. Both are pure and vmap over seeds and hyper-parameters:

    jit( vmap seeds ( loop rounds ( vmap lanes of clients ( loop local steps ))))

Algorithm 1 of Diana et al. (AAAI-25): the server sends its model, each participant
trains on its own rows and returns, the server averages. The average of the deltas
(sent minus returned) is handed to an optax optimiser as if it were a gradient;
`optax.sgd(1.0)` is plain FedAvg.

Randomness: everything that client c draws in round t comes from
`fold_in(fold_in(key, t), c)`: one stream per local epoch for the order of its rows, one
per local step for its training, one per local step for the rows of a Poisson batch, one
for its message and one for what the server makes of it. Nothing else enters, so any
round of any client can be replayed alone, unless clients keep something of the last.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax

from fljax import batches, in_place, tree
from fljax import local as local_lib
from fljax.schedule import Schedule
from fljax.types import (
    Batch,
    EncodeFn,
    Key,
    Params,
    PyTree,
    Rows,
    Sender,
    Transcript,
)

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
      loss: `[R]` weighted mean of the participants' local training losses, 0 where there
        were none.
      kept: leaves `[C + 1, ...]`, what clients keep from round to round; None if nothing.
    """

    server: ServerState
    transcript: Transcript
    loss: jax.Array
    kept: PyTree = None


def start(
    params: Params,
    schedule: Schedule,
    server_optimiser: optax.GradientTransformation,
    record_dtype: jax.typing.DTypeLike | None = None,
    local: local_lib.LocalUpdate | None = None,
) -> Run:
    """State before the first round, with an empty transcript.

    Args:
      params: initial model.
      schedule: who trains when, and what is recorded.
      server_optimiser: applied to the weighted mean delta.
      record_dtype: of the messages that the transcript keeps, e.g. bfloat16 for half the
        memory; None keeps them as they are. The training does not depend on it.
      local: the clients' algorithm, where it keeps something from round to round.
    """
    recorded, num_slots = schedule.recorded_clients.shape
    transcript = Transcript(
        round=jnp.asarray(schedule.recorded_rounds),
        client=jnp.asarray(schedule.recorded_clients),
        params=_zeros(params, recorded),
        delta=_zeros(params, recorded, num_slots, dtype=record_dtype),
    )
    server = ServerState(
        params, server_optimiser.init(params), jnp.zeros((), jnp.int32)
    )
    kept = None
    if local is not None and local.memory is not None:
        kept = _of_all(local.memory.keep(local.init(params)), len(schedule.sizes))
    return Run(server, transcript, jnp.zeros(schedule.record.shape), kept)


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
      rows: all clients' rows, flat `[N, ...]` and sorted by client, as
        `federation.Tables.of` sorts them: another order makes other clients, unseen.
      schedule: who trains when.
      stop: [] round to stop before, at most all rounds of the schedule; may be traced,
        so that chunks share one program.
      local: the clients' algorithm.
      server_optimiser: applied to the weighted mean delta.
      receive: what the server makes of each message before the mean, e.g. that of a
        defense; the transcript keeps the message as it was sent.

    Returns:
      The `Run` after round `stop - 1`.

    Raises:
      ValueError: the clients keep something, of which the run does not know.
    """
    if local.memory is not None and run.kept is None:
        raise ValueError("run: expected one that was started with this local")

    def round_(_, run):
        return _round(key, run, rows, schedule, local, server_optimiser, receive)

    schedule, rows = jax.tree.map(jnp.asarray, (schedule, rows))
    stop = jnp.minimum(stop, schedule.num_rounds)
    return lax.fori_loop(run.server.round, stop, round_, run)


def _round(key, run, rows, schedule, local, server_optimiser, receive) -> Run:
    server, transcript, loss, kept = run
    t = server.round
    row = schedule.record[t]
    sent = jax.tree.map(
        lambda leaf, new: _put(leaf, row, new), transcript.params, server.params
    )
    transcript = transcript._replace(params=sent)
    delta, round_loss, sent_back, kept = _train_clients(
        jax.random.fold_in(key, t), server.params, rows, schedule, t, local, receive,
        transcript.delta, kept,
    )  # fmt: skip
    updates, opt_state = server_optimiser.update(delta, server.opt_state, server.params)
    params = optax.apply_updates(server.params, updates)
    if not in_place.only_scales(server_optimiser, server.params):
        # Momentum or weight decay, say, would move a model without a message.
        came = schedule.client_ends.done[t % len(schedule.participants)].any()
        params, opt_state = jax.tree.map(
            lambda new, old: jnp.where(came, new, old),
            (params, opt_state), (server.params, server.opt_state),
        )  # fmt: skip
    return Run(
        ServerState(params, opt_state, t + 1),
        transcript._replace(delta=sent_back),
        loss.at[t].set(round_loss),
        kept,
    )


def _train_clients(key, sent, rows, schedule, t, local, receive, deltas, kept):
    """Round t of all participants: mean delta, mean loss, deltas with its row filled, and
    what clients have kept."""
    table, row = t % schedule.participants.shape[0], schedule.record[t]
    slots = jax.tree.map(lambda leaf: leaf[table], schedule.slots)
    client_ends = jax.tree.map(lambda leaf: leaf[table], schedule.client_ends)
    clients = schedule.participants[table]
    client_keys = jax.vmap(jax.random.fold_in, (None, 0))(key, clients)
    train_keys = _fold_in(client_keys, _TRAIN)
    round_of_all = jnp.full(schedule.num_lanes, t)
    stream = _SAMPLE if schedule.poisson else _SHUFFLE
    index, real = batches.rows(_fold_in(client_keys, stream), clients, schedule, slots)
    fresh = _of_all(local.init(sent), schedule.num_lanes)

    def begun(step):
        """Lanes whose clients begin at a step."""
        if local.memory is None:
            return fresh
        last = len(slots.participant_index) - 1
        who = clients[slots.participant_index[jnp.minimum(step, last)]]
        own = jax.tree.map(lambda leaf: leaf[who], kept)
        return jax.vmap(local.memory.resume)(fresh, own)

    def train_step(s, lanes):
        slot = jax.tree.map(lambda leaf: leaf[s], slots)
        batch = jax.tree.map(lambda leaf: leaf[index[s]], rows)
        batch = Batch(
            batch.x, batch.y, real[s], clients[slot.participant_index], round_of_all
        )
        step_keys = jax.vmap(jax.random.fold_in)(
            train_keys[slot.participant_index], slot.step
        )
        return jax.vmap(local.step, (0, 0, None, 0))(step_keys, lanes, sent, batch)

    def segment(carry, xs):
        lanes, total, deltas, left = carry
        (begin, end), done = xs
        lanes = lax.fori_loop(begin, end, train_step, lanes)
        participant_index = slots.participant_index[end - 1]  # whoever is done here
        sender = Sender(clients[participant_index], round_of_all)
        keys = client_keys[participant_index]
        message, received = _messages(keys, lanes, sent, sender, local, receive)
        share = jax.tree.map(lambda leaf: _weighted_sum(done.weight, leaf), received)
        total = jax.tree.map(jnp.add, total, share)
        deltas = jax.tree.map(
            lambda leaf, new: _put(leaf, (row, done.slot), new), deltas, message.delta
        )
        if local.memory is not None:
            nobody = len(schedule.sizes)
            who = jnp.where(done.done, sender.client, nobody)
            left = jax.tree.map(
                lambda leaf, new: leaf.at[who].set(new, mode="drop"),
                left, jax.vmap(local.memory.keep)(lanes),
            )  # fmt: skip
        lanes = jax.tree.map(lambda f, l: _where(done.done, f, l), begun(end), lanes)
        return (lanes, total, deltas, left), None

    ends = schedule.end_steps
    bounds = (jnp.concatenate([jnp.zeros(1, ends.dtype), ends])[:-1], ends)
    zero = local_lib.Message(jax.tree.map(jnp.zeros_like, sent), jnp.zeros(()))
    (_, total, deltas, kept), _ = lax.scan(
        segment, (begun(0), zero, deltas, kept), (bounds, client_ends)
    )
    weight = jnp.sum(client_ends.weight)
    mean = jax.tree.map(lambda leaf: leaf / jnp.where(weight > 0, weight, 1), total)
    return mean.delta, mean.loss, deltas, kept


def _messages(keys, lanes, sent, sender, local, receive):
    """Messages of all lanes as they are sent, and as the server takes them."""
    message = jax.vmap(local.final, (0, 0, None, 0))(
        _fold_in(keys, _MESSAGE), lanes, sent, sender
    )
    if receive is None:
        return message, message
    delta = jax.vmap(
        lambda key, sent, who: tree.of_form("receive", receive(key, sent, who), sent)
    )(_fold_in(keys, _RECEIVE), message.delta, sender)
    return message, message._replace(delta=delta)


def _of_all(tree, count: int):
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), tree)


def _fold_in(keys, number: int):
    return jax.vmap(jax.random.fold_in, (0, None))(keys, number)


def _weighted_sum(weight, leaf):
    # `where`, for an idle lane may hold anything.
    weight = weight.reshape(-1, *[1] * (leaf.ndim - 1))
    return jnp.sum(jnp.where(weight > 0, weight * leaf, 0), axis=0)


def _where(condition, yes, no):
    return jnp.where(condition.reshape(-1, *[1] * (yes.ndim - 1)), yes, no)


def _zeros(params, *axes: int, dtype=None):
    return jax.tree.map(
        lambda leaf: jnp.zeros((*axes, *leaf.shape), dtype or leaf.dtype), params
    )


def _put(leaf, where, value):
    """Writes into a transcript, which may be empty; what lies outside is dropped."""
    if not leaf.size:
        return leaf
    return leaf.at[where].set(value.astype(leaf.dtype), mode="drop")
