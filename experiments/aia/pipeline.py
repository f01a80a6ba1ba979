"""One point of an attribute-inference run: train or load, eavesdrop, attack, score."""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.progress import Progress

from experiments.aia import (
    active,
    defense,
    defense_config,
    federation,
    gradients,
    model_based,
    oracle,
    passive,
    privacy_report,
    reconstruction,
    saved,
    scoring,
    trajectory,
)
from experiments.aia import clients as clients_lib
from experiments.aia.clients import Clients
from experiments.aia.problem import Problem, build
from experiments.aia.scene import Prepared, Scene, Settings, Victims
from fljax import data
from fljax.defenses import specs
from fljax.driver import stages
from fljax.driver.config import ConfigError
from fljax.driver.stage_cache import StageCache
from fljax.results import Row
from fljax.transcript import views
from fljax.transcript.views import ClientView
from fljax.types import Transcript

# Names of --attack_kinds, in the order in which they run.
_KINDS = {
    "model": model_based.KIND,
    "grad": gradients.KIND,
    "reconstruct": reconstruction.KIND,
    "active": active.KIND,
    "oracle": oracle.KIND,
    "linear_inversion": trajectory.FIRST_ORDER,
    "trajectory": trajectory.KIND,
}
_LAST_ROUND_DOES = {"model", "oracle"}  # kinds that need no more of the transcript
_SOME_DO = {"model", "grad", "linear_inversion", "trajectory"}  # and no more clients


class Outcome(NamedTuple):
    """What came of one point.

    Attributes:
      rows: results.
      seconds: stage -> what -> seconds; compile time apart where it matters.
      transcript: leaves `[seeds, ...]`, None unless it is to be saved.
      defense: what the manifest says of it, None without one.
    """

    rows: list[Row]
    seconds: stages.Seconds
    transcript: Transcript | None
    defense: dict[str, Any] | None


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
    active_rounds = told.active.rounds if "active" in told.attack.kinds else 0
    shield = defense.maker(told.defense, told.train, active_rounds)
    most = told.run.max_clients_in_memory
    problem = build(clients, told.model, told.train, seeds, last, most, shield)
    prepared = Prepared(told, label, table, clients, problem)
    _check_attacks(prepared)
    return prepared


def run(prepared: Prepared, bars: Progress, part: StageCache) -> Outcome:
    """Runs all stages of one point.

    Args:
      prepared: from `prepare`.
      bars: to show progress.
      part: what an earlier run that was stopped has finished of it.
    """
    if prepared.told.run.save_transcript:
        return _run(prepared, bars, part)
    # A sweep over many points must not hold the transcripts of all.
    outcome = part.cached(
        "outcome",
        lambda: _run(prepared, bars, part)._replace(transcript=None),
        Outcome,
        Row,
    )
    part.forget("train")
    return outcome


def _run(prepared: Prepared, bars: Progress, part: StageCache) -> Outcome:
    told, label, table, clients, problem = prepared
    seconds: stages.Seconds = {}
    tried = None
    if problem.shield is not None:
        with stages.stage(seconds, "clip"):
            problem, tried = _choose_clip(prepared, bars)
        prepared = prepared._replace(problem=problem)
    if told.run.transcript is None:
        with stages.stage(seconds, "train"):
            seen = _train(prepared, bars, part)
    else:
        seen = saved.load(told.run.transcript, prepared)
    labels = scoring.Labels(
        "aia", table.name, told.model.name, str(defense_config.read(told.defense)),
        label, told.run.seeds,
    )  # fmt: skip
    with stages.stage(seconds, "losses"):
        rows = _losses(labels, problem, clients, seen)
    said = None
    if problem.shield is not None:
        rows += privacy_report.rows(labels, problem)
        active_server = "active" in told.attack.kinds
        said = privacy_report.describe(problem.shield, tried, active=active_server)
    if told.attack.kinds:
        rows += _attack(prepared, labels, seen, bars, part, seconds)
    return Outcome(rows, seconds, seen, said)


def _check_attacks(prepared: Prepared) -> None:
    """Refuses attacks that cannot run, before anything is trained."""
    told, table = prepared.told, prepared.table
    kinds = told.attack.kinds
    if kinds and prepared.clients.datasets[0].attribute is None:
        raise ConfigError(
            f"--data_sensitive: {table.name} names no sensitive attribute; choose a "
            "column, or train only with --attack_kinds="
        )
    if told.run.record == "last" and set(kinds) - _LAST_ROUND_DOES:
        raise ConfigError(
            "--record=last: only --attack_kinds=model,oracle need no more"
        )
    if told.run.max_clients_in_memory is not None and set(kinds) - _SOME_DO:
        raise ConfigError(
            "--max_clients_in_memory: only --attack_kinds="
            f"{','.join(name for name in _KINDS if name in _SOME_DO)} attack some clients"
        )
    for kind in kinds:
        _KINDS[kind].check(prepared)


def _choose_clip(prepared: Prepared, bars: Progress):
    told = prepared.told
    seeds = told.run.seeds
    clips = len(specs.alternatives(prepared.problem.shield.spec))
    task = bars.add_task("clips", total=len(seeds) * clips, visible=clips > 1)
    return defense.choose_clip(
        prepared.problem,
        prepared.clients,
        progress=lambda done: bars.update(task, completed=done),
    )


def _train(prepared: Prepared, bars: Progress, part: StageCache) -> Transcript:
    told = prepared.told
    num_rounds = told.train.num_rounds
    task = bars.add_task(f"rounds {prepared.label}", total=num_rounds)
    run = federation.train(
        prepared.problem,
        chunk=max(1, num_rounds // 20),
        progress=lambda done: bars.update(task, completed=done),
        states=part.states("train"),
        record_dtype=told.run.record_dtype,
    )
    return run.transcript


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
    prepared: Prepared,
    labels,
    seen: Transcript,
    bars: Progress,
    part: StageCache,
    seconds,
) -> list[Row]:
    """Every attack that was asked for, on every client of every seed."""
    victims, view = _victims(prepared, labels, seen)
    scene = Scene(prepared, seen, view, victims, bars)
    rows = scoring.baseline(labels, victims.goal)
    kinds = prepared.told.attack.kinds
    for name, kind in _KINDS.items():
        if name in kinds:
            with stages.stage(seconds, name):
                rows += part.cached(name, functools.partial(kind.rows, scene), Row)
    if {"active", "oracle"} <= set(kinds):
        # The paper's oracle equals its longest active attack to the last digit.
        strongest = max(prepared.told.active.report)
        rows += scoring.better(
            rows, "model_oracle_or_active", ("model_oracle", "oracle"),
            ("model", f"active_{strongest}"),
        )  # fmt: skip
    return rows


def _victims(
    prepared: Prepared, labels, seen: Transcript
) -> tuple[Victims, ClientView]:
    told, _, table, clients, problem = prepared
    attribute = clients.datasets[0].attribute
    view = views.client_view(seen, range(clients.sizes.shape[1]))
    pooled = told.attack.score == "pooled"
    victims = Victims(
        problem=problem,
        known=jax.tree.map(scoring.pool, clients.known) if pooled else clients.known,
        goal=scoring.target(clients, view.has_messages, pooled=pooled),
        candidates=np.stack([d.attribute.candidates for d in clients.datasets]),
        kind=attribute.kind,
        linear=told.model.name == "linear" and table.task == "regression",
        pooled=pooled,
        attacker=passive.model_attacker(problem.loss_fn, attribute.kind),
        labels=labels,
    )
    return victims, view
