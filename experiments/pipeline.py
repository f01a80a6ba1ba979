"""One point of an attribute-inference run: train or load, eavesdrop, attack, score."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import Progress

from experiments import clients as clients_lib
from experiments import federation, model_based, passive, scoring, settings
from experiments.clients import Clients
from experiments.config import ConfigError
from experiments.federation import Problem
from fljax import data, transcript
from fljax.results import Row
from fljax.types import Transcript


class Settings(NamedTuple):
    """All that a run was told."""

    data: settings.DataConfig
    partition: settings.PartitionConfig
    model: settings.ModelConfig
    train: settings.TrainConfig
    attack: settings.AttackConfig
    run: settings.RunConfig


class Prepared(NamedTuple):
    """Everything that is known before training."""

    told: Settings
    label: str
    table: data.Table
    clients: Clients
    problem: Problem


class Outcome(NamedTuple):
    """What came of one point.

    Attributes:
      rows: results.
      seconds: stage -> what -> seconds; compile time apart where it matters.
      transcript: leaves `[seeds, ...]`.
    """

    rows: list[Row]
    seconds: dict[str, dict[str, float]]
    transcript: Transcript


def prepare(table: data.Table, told: Settings, label: str) -> Prepared:
    """Encodes the data, deals the rows and builds the schedule."""
    seeds = told.run.seeds
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seeds: expected distinct seeds, got {seeds}")
    clients = clients_lib.gather(table, told.data, told.model, told.partition, seeds)
    record = None
    if told.run.record == "last":
        if set(told.attack.kinds) - {"model"}:
            raise ConfigError("--record=last: only --attack_kinds=model needs no more")
        record = [told.train.num_rounds - 1]
    problem = federation.pose(clients, told.model, told.train, seeds, record)
    return Prepared(told, label, table, clients, problem)


def run(prepared: Prepared, bars: Progress) -> Outcome:
    """Runs all stages of one point."""
    told, label, table, clients, problem = prepared
    seconds: dict[str, dict[str, float]] = {}
    if told.run.transcript is None:
        seen = _train(prepared, bars, seconds)
    else:
        seen = _load(told.run.transcript, prepared)
    labels = scoring.Labels(
        "aia", table.name, told.model.name, "none", label, told.run.seeds
    )
    rows = _timed(seconds, "losses", lambda: _losses(labels, problem, clients, seen))
    if clients.datasets[0].attribute is not None:
        rows += _attack(prepared, labels, seen, bars, seconds)
    return Outcome(rows, seconds, seen)


def _train(prepared: Prepared, bars: Progress, seconds) -> Transcript:
    told = prepared.told
    num_rounds = told.train.num_rounds
    task = bars.add_task(f"rounds {prepared.label}", total=num_rounds)
    trained = federation.train(
        prepared.problem,
        prepared.clients,
        jax.vmap(jax.random.key)(np.asarray(told.run.seeds)),
        chunk=max(1, num_rounds // 20),
        progress=lambda done: bars.update(task, completed=done),
    )
    seconds["train"] = {"compile": trained.compile_seconds, "run": trained.seconds}
    return trained.run.transcript


def _load(stem: str, prepared: Prepared) -> Transcript:
    """A saved transcript in place of a training."""
    if len(prepared.told.run.seeds) != 1:
        raise ConfigError("--transcript: expected exactly one seed in --seeds")
    seen, _ = transcript.load(stem)
    expected = jax.eval_shape(prepared.problem.model.init, jax.random.key(0))
    found = jax.tree.map(lambda leaf: leaf.shape[1:], seen.params)
    if found != jax.tree.map(lambda leaf: leaf.shape, expected):
        raise transcript.TranscriptError(
            f"{stem}: its parameters are not those of --model_name="
            f"{prepared.told.model.name} on this data"
        )
    if seen.client.max() >= prepared.clients.sizes.shape[1]:
        raise transcript.TranscriptError(
            f"{stem}: it has client {seen.client.max()}, the partition has only "
            f"{prepared.clients.sizes.shape[1]} clients"
        )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], seen)


def _losses(labels, problem: Problem, clients: Clients, seen: Transcript) -> list[Row]:
    """Loss of every model that was sent, on all training and all test rows."""
    sets = {"train_loss": (clients.rows, clients_lib.row_mask(clients))}
    if clients.test is not None:
        sets["test_loss"] = (clients.test, clients.test_mask)
    rows = []
    for metric, (each, mask) in sets.items():
        curves = federation.loss_curve(problem, seen.params, each, mask)
        for (seed, at), value in np.ndenumerate(curves):
            setting = f"round_{int(seen.round[seed, at])}"
            count = mask[seed].sum()
            rows.append(labels.row(seed, "none", setting, "all", metric, value, count))
    return rows


def _attack(
    prepared: Prepared, labels, seen: Transcript, bars: Progress, seconds
) -> list[Row]:
    told, _, table, clients, problem = prepared
    attribute = clients.datasets[0].attribute
    box = passive.inbox(seen, clients.sizes.shape[1])
    pooled = told.attack.score == "pooled"
    known = jax.tree.map(scoring.pool, clients.known) if pooled else clients.known
    victims = model_based.Victims(
        problem=problem,
        known=known,
        goal=scoring.target(clients, box.count > 0, pooled=pooled),
        candidates=np.stack([d.attribute.candidates for d in clients.datasets]),
        kind=attribute.kind,
        linear=told.model.name == "linear" and table.task == "regression",
        labels=labels,
    )
    rows = scoring.baseline(labels, victims.goal)
    kinds = told.attack.kinds
    if "model" in kinds:
        returned, sent = passive.last_models(seen, box)
        for name, params in (("model", returned), ("model_global", sent)):
            rows += _timed(
                seconds,
                name,
                lambda n=name, p=params: model_based.attack(victims, n, "passive", p),
            )
    if "grad" in kinds and attribute.kind != "continuous":
        rows += _gradient(prepared, victims, seen, box, bars, seconds)
    if "reconstruct" in kinds:
        if not victims.linear:
            raise ConfigError(
                "--attack_kinds: reconstruct needs --model_name=linear and a "
                "regression target"
            )
        rows += _timed(
            seconds,
            "reconstruct",
            lambda: model_based.reconstruct(victims, clients, seen, box, told.attack),
        )
    return rows


def _gradient(prepared, victims, seen, box, bars, seconds) -> list[Row]:
    told, clients = prepared.told, prepared.clients
    begin = time.perf_counter()
    task = bars.add_task("gradient attack, seeds", total=len(told.run.seeds))
    found, compiling = passive.gradient_grid(
        prepared.problem,
        seen,
        box,
        clients.known,
        victims.candidates,
        told.run.seeds,
        told.attack,
        progress=lambda done: bars.update(task, completed=done),
    )
    total = time.perf_counter() - begin
    seconds["grad"] = {"compile": compiling, "run": total - compiling}
    own = scoring.target(clients, box.count > 0, pooled=False)
    return scoring.grid(victims.labels, found, own)


def _timed(seconds: dict[str, Any], stage: str, call: Callable) -> Any:
    begin = time.perf_counter()
    found = call()
    seconds[stage] = {"run": time.perf_counter() - begin}
    return found
