"""From flags to a training: data, clients, schedule, model, and the compiled rounds.

Everything has a leading axis over seeds; the whole run is one program vmapped over it.
"""

import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import settings
from experiments.config import ConfigError
from fljax import data, local, losses, models, participation, partition, rounds
from fljax import schedule as schedule_lib
from fljax.types import Exchange, Features, Key, Known, Model, Params, Rows


class Federation(NamedTuple):
    """Clients and their rows, `[seeds, ...]`.

    Attributes:
      datasets: encoded data of each seed.
      rows: `Rows` with leaves `[seeds, N, ...]`, padded at the end.
      sizes: `[seeds, C]` rows of each client.
      known: `Known` with leaves `[seeds, C, n, ...]`, what an adversary knows.
      truth: `[seeds, C, n]` sensitive candidate or value, for scoring only.
      test: `Rows` `[seeds, M, ...]`, or None.
      test_mask: `[seeds, M]`.
    """

    datasets: list[data.Dataset]
    rows: Rows
    sizes: np.ndarray
    known: Known
    truth: np.ndarray
    test: Rows | None
    test_mask: np.ndarray


class Problem(NamedTuple):
    """What is trained and how.

    Attributes:
      model: the model.
      loss_fn: loss of one example.
      local: the clients' algorithm.
      server_optimiser: optax transformation.
      schedule: joined over seeds.
      axes: `in_axes` of the schedule.
    """

    model: Model
    loss_fn: losses.LossFn
    local: local.LocalUpdate
    server_optimiser: optax.GradientTransformation
    schedule: schedule_lib.Schedule
    axes: schedule_lib.Schedule


class Trained(NamedTuple):
    """Outcome of `train`.

    Attributes:
      run: `rounds.Run` with leaves `[seeds, ...]`.
      compile_seconds: time to trace and compile.
      seconds: time to run.
    """

    run: rounds.Run
    compile_seconds: float
    seconds: float


def load_table(config: settings.DataConfig) -> data.Table:
    """Loads the data set; refuses options that it does not know."""
    ignored = ("name", "dir", "preset")
    chosen = {
        field: value
        for field, value in vars(config).items()
        if field not in ignored and value not in (None, ())
    }
    return data.load(config.name, data_dir=config.dir, **chosen)


def gather(
    table: data.Table, config: settings.DataConfig, model: settings.ModelConfig,
    split: settings.PartitionConfig, seeds: tuple[int, ...],
) -> Federation:  # fmt: skip
    """Encodes and deals the rows of every seed."""
    which = config.preset or ("linear" if model.name == "linear" else "neural")
    preset = data.preset(config.name, which)
    datasets = [data.prepare(table, preset, seed=seed) for seed in seeds]
    parts = [_deal(d, split, seed) for d, seed in zip(datasets, seeds, strict=True)]
    if len({len(p) for p in parts}) > 1:
        raise ConfigError(
            "--seeds: seeds differ in the number of clients, run them apart"
        )
    sizes = np.array([[len(rows) for rows in p] for p in parts])
    width = datasets[0].attribute.width if datasets[0].attribute else 0
    most = int(sizes.max())
    per_client = [
        [_pad_rows(_take(d.train, rows), most) for rows in p]
        for d, p in zip(datasets, parts, strict=True)
    ]
    x, y, truth, mask = _stack([_stack(clients) for clients in per_client])
    flat = [
        _take(d.train, np.concatenate(p)) for d, p in zip(datasets, parts, strict=True)
    ]
    total = int(sizes.sum(axis=1).max())
    flat_x, flat_y, _, _ = _stack([_pad_rows(rows, total) for rows in flat])
    public = x._replace(numeric=x.numeric[..., : x.numeric.shape[-1] - width])
    test, test_mask = _test_rows(datasets)
    return Federation(
        datasets, Rows(flat_x, flat_y), sizes, Known(public, y, mask), truth, test,
        test_mask,
    )  # fmt: skip


def pose(
    federation: Federation, model: settings.ModelConfig, train: settings.TrainConfig,
    seeds: tuple[int, ...], record_rounds=None,
) -> Problem:  # fmt: skip
    """Builds model, algorithm and schedule."""
    dataset = federation.datasets[0]
    outputs = 1
    if dataset.table.task == "multiclass":
        outputs = int(max(d.train.y.max() for d in federation.datasets)) + 1
    shape = (dataset.num_numeric, federation.rows.x.codes.shape[-1])
    common = {
        "outputs": outputs, "num_onehot": dataset.num_onehot,
        "initialisation": model.initialisation,
    }  # fmt: skip
    built = (
        models.linear(*shape, **common)
        if model.name == "linear"
        else models.mlp(*shape, hidden=model.hidden, **common)
    )
    element_loss = {
        "regression": losses.squared,
        "binary": losses.logistic,
        "multiclass": losses.cross_entropy,
    }[dataset.table.task]
    loss_fn = losses.example_loss(built.apply, element_loss)
    one_step = train.algorithm == "fed_sgd"
    update = local.sgd(
        loss_fn,
        optax.sgd(1.0)
        if one_step
        else _optimiser(train.client_optimiser, train.learning_rate),
        proximal=train.proximal if train.algorithm == "fed_prox" else None,
    )
    server_rate = train.server_learning_rate * (train.learning_rate if one_step else 1)
    schedules = [
        _schedule(sizes, train, seed, record_rounds)
        for sizes, seed in zip(federation.sizes, seeds, strict=True)
    ]
    joined, axes = schedule_lib.stack(schedules)
    return Problem(
        built, loss_fn, update, _optimiser(train.server_optimiser, server_rate), joined,
        axes,
    )  # fmt: skip


def train(
    problem: Problem, federation: Federation, keys: Key, *, chunk: int, progress
) -> Trained:
    """Runs all rounds of all seeds in one compiled program, `chunk` rounds a call.

    Args:
      problem: from `pose`.
      federation: from `gather`.
      keys: `[seeds]`.
      chunk: rounds between two looks at the loss.
      progress: called with the rounds done.

    Raises:
      ConfigError: as soon as a loss is not finite.
    """
    begin = time.perf_counter()
    key_init, key_train = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    params = jax.jit(jax.vmap(problem.model.init))(key_init)
    start = jax.vmap(
        lambda p, s: rounds.start(p, s, problem.server_optimiser), (0, problem.axes)
    )

    def advance(key, run, rows, schedule, stop):
        return rounds.advance(
            key, run, rows, schedule, stop, local=problem.local,
            server_optimiser=problem.server_optimiser,
        )  # fmt: skip

    run = jax.jit(start)(params, problem.schedule)
    rows = jax.tree.map(jnp.asarray, federation.rows)
    step = jax.jit(jax.vmap(advance, (0, 0, 0, problem.axes, None)), donate_argnums=1)
    stop = jnp.zeros((), jnp.int32)
    step = step.lower(key_train, run, rows, problem.schedule, stop).compile()
    compiled = time.perf_counter()
    num_rounds = problem.schedule.num_rounds
    for done in [*range(chunk, num_rounds, chunk), num_rounds]:
        run = step(key_train, run, rows, problem.schedule, jnp.int32(done))
        _check_finite(np.asarray(run.loss)[:, :done])
        progress(done)
    return Trained(run, compiled - begin, time.perf_counter() - compiled)


def exchanges(run: rounds.Run) -> Exchange:
    """Messages by client, leaves `[seeds, C, R, ...]`, for full participation."""
    transcript = run.transcript
    num_clients = transcript.client.shape[-1]
    params = jax.tree.map(
        lambda leaf: jnp.broadcast_to(
            leaf[:, None], (leaf.shape[0], num_clients, *leaf.shape[1:])
        ),
        transcript.params,
    )
    delta = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 2, 1), transcript.delta)
    return Exchange(params, delta)


def loss_curve(problem: Problem, params: Params, rows: Rows, mask) -> jax.Array:
    """Mean loss `[seeds, R]` of the models `[seeds, R, ...]` on `rows [seeds, N]`."""

    def one(params, rows, mask):
        values = jax.vmap(problem.loss_fn, (None, 0, 0))(params, rows.x, rows.y)
        return losses.masked_mean(values, mask)

    def curve(args):
        params, rows, mask = args
        return jax.lax.map(lambda p: one(p, rows, mask), params)

    return jax.jit(lambda *args: jax.lax.map(curve, args))(params, rows, mask)


def row_mask(federation: Federation) -> np.ndarray:
    """`[seeds, N]`, True where `federation.rows` holds a real row."""
    total = federation.rows.y.shape[1]
    return np.arange(total) < federation.sizes.sum(axis=1)[:, None]


def _deal(dataset: data.Dataset, config: settings.PartitionConfig, seed: int):
    """Row indices of each client; the draws do not depend on any other seed."""
    rng = np.random.default_rng([seed, 1])
    frame, count = dataset.train.frame, config.clients
    num_rows = len(dataset.train.y)
    try:
        match config.kind:
            case "iid":
                return partition.iid(rng, num_rows, count)
            case "contiguous":
                return partition.contiguous(num_rows, count)
            case "by_column":
                column = _raw_column(frame, config.column)
                return partition.by_column(column, min(count, len(np.unique(column))))
            case "ordered":
                return partition.ordered(_raw_column(frame, config.column), count)
            case "correlation":
                return partition.correlation(
                    rng, dataset.train.y, dataset.train.truth, count,
                    config.heterogeneity,
                )  # fmt: skip
            case "dirichlet":
                return partition.dirichlet(rng, dataset.train.y, count, config.alpha)
            case "label_shards":
                return partition.label_shards(
                    rng, dataset.train.y, count, config.shards
                )
            case "dominant_label":
                return partition.dominant_label(
                    rng, dataset.train.y, count, config.rows, config.share
                )
    except ValueError as error:
        raise ConfigError(f"--partition_kind={config.kind}: {error}") from None


def _raw_column(frame, name: str | None) -> np.ndarray:
    if name not in frame.columns:
        raise ConfigError(
            f"--partition_column: expected one of {', '.join(frame.columns)}, got {name}"
        )
    return frame[name].to_numpy()


def _take(split: data.Split, rows: np.ndarray):
    x = Features(split.x.numeric[rows], split.x.codes[rows])
    return x, split.y[rows], split.truth[rows], np.ones(len(rows), bool)


def _pad_rows(tree, length: int):
    return jax.tree.map(
        lambda a: np.pad(a, ((0, length - len(a)), *[(0, 0)] * (a.ndim - 1))), tree
    )


def _stack(trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _test_rows(datasets):
    most = max(len(d.test.y) for d in datasets)
    if not most:
        return None, np.zeros((len(datasets), 0), bool)
    taken = [_take(d.test, np.arange(len(d.test.y))) for d in datasets]
    x, y, _, mask = _stack([_pad_rows(rows, most) for rows in taken])
    return Rows(x, y), mask


def _schedule(sizes, train: settings.TrainConfig, seed: int, record_rounds):
    rng = np.random.default_rng([seed, 2])
    count = len(sizes)
    chosen = None
    if train.participation == "uniform":
        chosen = participation.uniform(rng, count, train.num_rounds, train.fraction)
    elif train.participation == "poisson":
        chosen = participation.poisson(rng, count, train.num_rounds, train.fraction)
    one_step = train.algorithm == "fed_sgd"
    return schedule_lib.build(
        sizes,
        num_rounds=train.num_rounds,
        batch_size=None if one_step else train.batch_size,
        participants=chosen,
        epochs=1 if one_step else train.local_epochs,
        steps=None if one_step else train.local_steps,
        lanes=train.lanes,
        weights=train.weights,
        shuffle=train.shuffle and not one_step,
        record_rounds=record_rounds,
    )


def _optimiser(name: str, rate: float) -> optax.GradientTransformation:
    match name:
        case "momentum":
            return optax.sgd(rate, momentum=0.9)
        case "adam":
            return optax.adam(rate)
    return optax.sgd(rate)


def _check_finite(loss: np.ndarray) -> None:
    bad = ~np.isfinite(loss)
    if bad.any():
        first = int(np.argmax(bad.any(axis=0)))
        raise Diverged(first)


class Diverged(ArithmeticError):
    """Training produced a loss that is not finite.

    Attributes:
      round: the first such round.
    """

    def __init__(self, round_: int):
        super().__init__(f"loss is not finite in round {round_}")
        self.round = round_
