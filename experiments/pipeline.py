"""One point of an attribute-inference run: train or load, eavesdrop, attack, score."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import Progress

from experiments import clients as clients_lib
from experiments import (
    config,
    federation,
    model_based,
    passive,
    scoring,
    settings,
    stages,
)
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
    seconds: stages.Seconds
    transcript: Transcript


def prepare(table: data.Table, told: Settings, label: str) -> Prepared:
    """Encodes the data, deals the rows and builds the schedule.

    Raises:
      ConfigError: if the flags do not fit each other or the data.
    """
    seeds = told.run.seeds
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seeds: expected distinct seeds, got {seeds}")
    if told.run.transcript is not None and len(seeds) != 1:
        raise ConfigError("--transcript: expected exactly one seed in --seeds")
    clients = clients_lib.gather(table, told.data, told.model, told.partition, seeds)
    last = [told.train.num_rounds - 1] if told.run.record == "last" else None
    problem = federation.pose(clients, told.model, told.train, seeds, last)
    prepared = Prepared(told, label, table, clients, problem)
    _check_attacks(prepared)
    return prepared


def run(prepared: Prepared, bars: Progress) -> Outcome:
    """Runs all stages of one point."""
    told, label, table, clients, problem = prepared
    seconds: stages.Seconds = {}
    if told.run.transcript is None:
        with stages.stage(seconds, "train"):
            seen = _train(prepared, bars)
    else:
        seen = _load(told.run.transcript, prepared)
    labels = scoring.Labels(
        "aia", table.name, told.model.name, "none", label, told.run.seeds
    )
    with stages.stage(seconds, "losses"):
        rows = _losses(labels, problem, clients, seen)
    if told.attack.kinds:
        rows += _attack(prepared, labels, seen, bars, seconds)
    return Outcome(rows, seconds, seen)


def identity(prepared: Prepared, seed: int) -> dict[str, Any]:
    """Which rows a transcript was recorded on, for its description."""
    told = prepared.told
    where = config.to_flags(told.data, "data") | config.to_flags(
        told.partition, "partition"
    )
    del where["data_dir"], where["data_sensitive"]
    hashes = [file.sha256 for file in prepared.table.files]
    return where | {"seed": seed, "sha256": hashes}


def _check_attacks(prepared: Prepared) -> None:
    """Refuses attacks that cannot run, before anything is trained."""
    told, _, table, clients, problem = prepared
    kinds, attribute = told.attack.kinds, clients.datasets[0].attribute
    if kinds and attribute is None:
        raise ConfigError(
            f"--data_sensitive: {table.name} names no sensitive attribute; choose a "
            "column, or train only with --attack_kinds="
        )
    if told.run.record == "last" and set(kinds) - {"model"}:
        raise ConfigError("--record=last: only --attack_kinds=model needs no more")
    if "grad" in kinds and attribute.kind == "continuous":
        raise ConfigError(
            f"--attack_kinds: grad needs a binary or categorical attribute, "
            f"{attribute.name} is continuous"
        )
    if "grad" in kinds and told.attack.score == "pooled":
        raise ConfigError(
            "--attack_score=pooled: grad attacks a client's own rows only"
        )
    if "reconstruct" in kinds:
        if told.model.name != "linear" or table.task != "regression":
            raise ConfigError(
                "--attack_kinds: reconstruct needs --model_name=linear and a "
                "regression target"
            )
        if told.run.transcript is None:
            recorded = problem.schedule.recorded_clients
            _check_messages(prepared, recorded, "--num_rounds")


def _check_messages(prepared: Prepared, recorded: np.ndarray, source: str) -> None:
    """A linear model needs one message more than it has parameters.

    Args:
      prepared: from `prepare`.
      recorded: `[seeds, Q, K]` client of every message.
      source: what decides how many there are.
    """
    told, _, _, clients, problem = prepared
    params = jax.eval_shape(problem.model.init, jax.random.key(0))
    needed = 1 + sum(leaf.size for leaf in jax.tree.leaves(params))
    everyone = range(clients.sizes.shape[1])
    fewest = min((recorded == c).sum(axis=(1, 2)).min() for c in everyone)
    if fewest < needed:
        raise ConfigError(
            f"{source}: reconstruct needs {needed} messages of every client, "
            f"got {fewest}"
        )
    chosen = told.attack.subset_rounds
    if chosen and (len(set(chosen)) < needed or max(chosen) >= fewest):
        raise ConfigError(
            f"--attack_subset_rounds: expected at least {needed} different messages "
            f"below {fewest}, got {len(set(chosen))} up to {max(chosen)}"
        )


def _train(prepared: Prepared, bars: Progress) -> Transcript:
    told = prepared.told
    num_rounds = told.train.num_rounds
    task = bars.add_task(f"rounds {prepared.label}", total=num_rounds)
    run = federation.train(
        prepared.problem,
        prepared.clients,
        jax.vmap(jax.random.key)(np.asarray(told.run.seeds)),
        chunk=max(1, num_rounds // 20),
        progress=lambda done: bars.update(task, completed=done),
    )
    return run.transcript


def _load(stem: str, prepared: Prepared) -> Transcript:
    """A saved transcript in place of a training."""
    seen, about = transcript.load(stem)
    rows = identity(prepared, prepared.told.run.seeds[0])
    if about.get("rows", rows) != rows:
        raise transcript.TranscriptError(
            f"{stem}: recorded on other rows: --data_*, --partition_* or --seeds differ"
        )
    expected = jax.eval_shape(prepared.problem.model.init, jax.random.key(0))
    found = jax.tree.map(lambda leaf: leaf.shape[1:], seen.params)
    if found != jax.tree.map(lambda leaf: leaf.shape, expected):
        raise transcript.TranscriptError(
            f"{stem}: its parameters are not those of --model_name="
            f"{prepared.told.model.name} on this data"
        )
    if seen.client.max(initial=-1) >= prepared.clients.sizes.shape[1]:
        raise transcript.TranscriptError(
            f"{stem}: it has client {seen.client.max()}, the partition has only "
            f"{prepared.clients.sizes.shape[1]} clients"
        )
    if "reconstruct" in prepared.told.attack.kinds:
        _check_messages(prepared, np.asarray(seen.client)[None], "--transcript")
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
    """Every attack that was asked for, on every client of every seed."""
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
        pooled=pooled,
        attacker=passive.model_attacker(problem.loss_fn, attribute.kind),
        labels=labels,
    )
    rows = scoring.baseline(labels, victims.goal)
    kinds = told.attack.kinds
    if "model" in kinds:
        returned, sent = passive.last_models(seen, box)
        with stages.stage(seconds, "model"):
            rows += model_based.attack(victims, "model", "passive", returned)
            rows += model_based.attack(victims, "model_global", "passive", sent)
    if "grad" in kinds:
        with stages.stage(seconds, "grad"):
            found = _gradient(prepared, victims, seen, box, bars)
            rows += scoring.grid(labels, found, victims.goal)
    if "reconstruct" in kinds:
        with stages.stage(seconds, "reconstruct"):
            rows += model_based.reconstruct(victims, clients, seen, box, told.attack)
    return rows


def _gradient(prepared, victims, seen, box, bars) -> passive.Grid:
    seeds = prepared.told.run.seeds
    task = bars.add_task("gradient attack, seeds", total=len(seeds))
    return passive.gradient_grid(
        prepared.problem,
        seen,
        box,
        victims.known,
        victims.candidates,
        seeds,
        prepared.told.attack,
        progress=lambda done: bars.update(task, completed=done),
    )
