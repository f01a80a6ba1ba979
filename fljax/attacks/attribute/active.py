"""Active server: rounds with ONE client who is sent forged models.

Algorithm 3 of Diana et al. (AAAI-25): the server answers the client's last model with
models that lead it to its own optimum. It treats what comes back as a gradient, as
any server does, and applies an optimiser of its choice to it, for this client alone:
`emulate_adam` is the paper's attack, `isolate` returns to the client what it sent, so that it
goes on training alone. Nothing else differs from an honest round (`rounds`), so a forged
round replays like any other.

What the adversary is assumed to do: it may choose what it sends in the attacked rounds,
which need be neither consecutive nor many; in the rounds between, the client trains on
honest models, which enters here only through the round numbers that its randomness
depends on. The settings of Adam are tuned (`design`) by running the attack again and
again from the same start; the paper's objective for that, the client's training loss
under the last forged model, is known to an adversary only if the client reports it
truthfully. `ActiveRun.loss` holds what it reports of its own accord.

The rows and the key are the client's: they are here because the client is simulated.
The adversary has the `Exchange`, the final forged model and the reported losses.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from scipy.stats import qmc

from fljax import rounds as rounds_lib
from fljax.local import LocalUpdate
from fljax.schedule import Schedule
from fljax.types import Array, Exchange, Key, Params, Rows


class ActiveRun(NamedTuple):
    """What an active server has after `R` attacked rounds.

    Attributes:
      exchange: leaves `[Q, ...]`, of the attacked rounds that the schedule records: the
        forged models sent, and sent minus returned.
      model: the forged model after the last round's update, never sent.
      loss: `[R]` mean training loss that the client reported in each round.
    """

    exchange: Exchange
    model: Params
    loss: jax.Array


class Range(NamedTuple):
    """Where a hyper-parameter is drawn from; a logarithmic one is positive."""

    low: float
    high: float
    logarithmic: bool = False


# Diana et al., appendix B.5.
ADAM_RANGES = {
    "alpha": Range(0.1, 50.0, logarithmic=True),
    "beta1": Range(0.6, 0.999),
    "beta2": Range(0.6, 0.999),
}


def isolate(
    key: Key,
    start: Params,
    rows: Rows,
    schedule: Schedule,
    attacked: Array,
    *,
    local: LocalUpdate,
) -> ActiveRun:
    """Sends the client its own last model back, every time; see `emulate_adam`."""
    return attack(
        key, start, rows, schedule, attacked, local=local,
        server_optimiser=optax.sgd(1.0),
    )  # fmt: skip


def emulate_adam(
    key: Key,
    start: Params,
    rows: Rows,
    schedule: Schedule,
    attacked: Array,
    *,
    local: LocalUpdate,
    alpha: jax.Array | float,
    beta1: jax.Array | float,
    beta2: jax.Array | float,
    eps: float = 1e-8,
) -> ActiveRun:
    """Algorithm 3: Adam on the client's pseudo-gradients, with bias correction.

    Args:
      key: of the client's run; its draws in round t come from it as in `rounds`.
      start: the model that it returned last, which is the first one that it is sent.
      rows: all clients' rows.
      schedule: with it as the only participant and more rounds than the largest entry
        of `attacked`; the rounds that it records come back in the exchange.
      attacked: `[R]` int32 increasing numbers of the attacked rounds.
      local: the clients' algorithm.
      alpha: Adam's step size, in units of the parameters; this and the others may be
        traced, so that trials vmap.
      beta1: decay of the first moment.
      beta2: decay of the second moment.
      eps: added to the root of the second moment.

    Returns:
      An `ActiveRun`.
    """
    adam = optax.adam(alpha, beta1, beta2, eps)
    return attack(
        key, start, rows, schedule, attacked, local=local, server_optimiser=adam
    )


def attack(
    key: Key,
    start: Params,
    rows: Rows,
    schedule: Schedule,
    attacked: Array,
    *,
    local: LocalUpdate,
    server_optimiser: optax.GradientTransformation,
) -> ActiveRun:
    """The attacked rounds under any server optimiser; see `emulate_adam`."""
    attacked = jnp.asarray(attacked, jnp.int32)

    def round_(run, t):
        run = run._replace(server=run.server._replace(round=t))
        run = rounds_lib.advance(
            key, run, rows, schedule, t + 1, local=local,
            server_optimiser=server_optimiser,
        )  # fmt: skip
        return run, None

    begin = rounds_lib.start(start, schedule, server_optimiser)
    run, _ = lax.scan(round_, begin, attacked)
    seen = run.transcript
    mine = Exchange(seen.params, jax.tree.map(lambda leaf: leaf[:, 0], seen.delta))
    return ActiveRun(mine, run.server.params, run.loss[attacked])


def design(ranges: dict[str, Range], num_trials: int, seed: int) -> np.ndarray:
    """Quasi-random trials of hyper-parameters (a scrambled Halton sequence).

    Divergence: the authors search with Optuna's TPE, one trial after another; these
    trials do not depend on each other's outcome and run side by side.

    Args:
      ranges: name -> range.
      num_trials: how many; fewer are the beginning of more.
      seed: of the scrambling.

    Returns:
      `[num_trials, len(ranges)]` float32, columns in the order of `ranges`.
    """
    unit = qmc.Halton(d=len(ranges), rng=np.random.default_rng(seed))
    columns = [
        low * (high / low) ** share if logarithmic else low + share * (high - low)
        for share, (low, high, logarithmic) in zip(
            unit.random(num_trials).T, ranges.values(), strict=True
        )
    ]
    return np.column_stack(columns).astype(np.float32)


class Detectability(NamedTuple):
    """How far forged models are from an honest one; leaves `[R]`.

    Attributes:
      distance: Euclidean, from the honest model.
      relative: the same in units of the honest server's last change.
    """

    distance: jax.Array
    relative: jax.Array


def detectability(forged: Params, honest: Params, before: Params) -> Detectability:
    """What the client could notice by comparing models.

    Args:
      forged: leaves `[R, ...]`, the models that it was sent.
      honest: the last model that it was sent by the honest server.
      before: the honest model before that.

    Returns:
      A `Detectability`; relative distances are infinite if the honest model stood still.
    """

    def distance(params):
        return optax.tree.norm(jax.tree.map(jnp.subtract, params, honest))

    far = jax.vmap(distance)(forged)
    return Detectability(far, far / distance(before))
