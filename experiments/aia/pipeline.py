"""One point of an attribute-inference run: train or load, eavesdrop, attack, score."""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.progress import Progress

from experiments.aia import (
    baselines,
    ceilings,
    errors,
    kinds,
    knowledge,
    privacy_report,
    refusals,
    saved,
    scoring,
    strangers,
    true_rows,
)
from experiments.aia.adversary_config import MESSAGES, Sight
from experiments.aia.baselines import Shared
from experiments.aia.guesses import Guess
from experiments.aia.scoring import Scoring
from experiments.aia.setup import Settings, Setup
from experiments.aia.wall import eavesdrop
from experiments.tabular import clients as clients_lib
from experiments.tabular import defense, defense_config, federation, targets
from experiments.tabular.problem import build
from fljax import data, fit
from fljax.auditing import values
from fljax.defenses import specs
from fljax.driver import stages
from fljax.driver.config import ConfigError
from fljax.driver.stage_cache import StageCache
from fljax.results import Labels, Row
from fljax.types import Transcript


class Outcome(NamedTuple):
    """What came of one point.

    Attributes:
      rows: results.
      seconds: stage -> what -> seconds; compile time apart where it matters.
      transcript: leaves `[seeds, ...]`, None unless it is to be saved.
      defense: what the manifest says of it, None without one.
      guesses: of every attack, where they are to be saved.
    """

    rows: list[Row]
    seconds: stages.Seconds
    transcript: Transcript | None
    defense: dict[str, Any] | None
    guesses: list[Guess]


def prepare(
    table: data.Table, config: Settings, label: str, trial: int | None = None
) -> Setup:
    """Encodes the data, deals the rows and builds the schedule.

    Args:
      table: from `clients.load_table`.
      config: of the point.
      label: of the point.
      trial: of the `Problem`.

    Raises:
      ConfigError: if the flags do not fit each other or the data.
    """
    seeds = config.run.seeds
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seeds: expected distinct seeds, got {seeds}")
    saved.check(config.run, label)
    dealt = clients_lib.deal(table, config.data, config.model, config.partition, seeds)
    active_rounds = config.active.rounds if "active" in config.attack.kinds else 0
    bound = defense.maker(config.defense, config.train, active_rounds)
    problem = build(
        dealt.clients,
        config.model,
        config.train,
        seeds,
        [config.train.num_rounds - 1] if config.run.record == "last" else None,
        most_clients=config.run.max_clients_in_memory,
        defense=bound,
        trial=trial,
    )
    _, known, truth = dealt
    if truth is not None and not truth.continuous and config.attack.kinds:
        count, most = truth.candidates.shape[1], config.run.most_values
        values.check("data_", table.inferred, count, most)
    if config.attack.score == "pooled" and truth is not None:
        known, truth = jax.tree.map(targets.pool, known), targets.pooled(truth)
    setup = Setup(config, label, table, dealt.clients, known, truth, problem)
    setup = setup._replace(known=knowledge.degraded(setup))
    setup, left_out = refusals.resolved(setup)
    return setup._replace(not_run=left_out)


def run(
    setup: Setup, bars: Progress, part: StageCache, shared: Shared | None = None
) -> Outcome:
    """Runs all stages of one point.

    Args:
      setup: from `prepare`.
      bars: to show progress.
      part: what an earlier run that was stopped has finished of it.
      shared: what does not depend on the training, with other points.
    """
    shared = shared or Shared()
    if setup.config.run.save_transcript:
        return _run(setup, bars, part, shared)
    # A sweep over many points must not hold the transcripts of all.
    outcome = part.cached(
        "outcome",
        lambda: _run(setup, bars, part, shared)._replace(transcript=None),
        Outcome,
        Guess,
        Row,
    )
    part.forget("train")
    return outcome


def _run(setup: Setup, bars: Progress, part: StageCache, shared: Shared) -> Outcome:
    config, label, problem = setup.config, setup.label, setup.problem
    seconds: stages.Seconds = {}
    tried = None
    if problem.bound_defense is not None:
        with stages.stage(seconds, "clip"):
            problem, tried = _choose_clip(setup, bars)
        setup = setup._replace(problem=problem)
    if config.run.transcript is None:
        with stages.stage(seconds, "train"):
            seen = _train(setup, bars, part)
    else:
        seen = saved.load(config.run.transcript, setup)
    labels = Labels(
        "aia", setup.table.name, config.model.name,
        str(defense_config.read(config.defense)), label,
    )  # fmt: skip
    with stages.stage(seconds, "losses"):
        rows = _losses(labels, setup, seen)
    said = None
    if problem.bound_defense is not None:
        rows += privacy_report.rows(labels, problem, config.run.seeds)
        active_server = "active" in config.attack.kinds
        said = privacy_report.describe(
            problem.bound_defense,
            tried,
            active=active_server,
            unbounded=ceilings.why_not(setup),
        )
    found = kinds.Found([], [])
    if config.attack.kinds:
        found = _attack(setup, labels, seen, shared, bars, part, seconds)
    return Outcome(rows + found.rows, seconds, seen, said, found.guesses)


def _choose_clip(setup: Setup, bars: Progress):
    config = setup.config
    seeds = config.run.seeds
    clips = len(specs.alternatives(setup.problem.bound_defense.spec))
    task = bars.add_task("clips", total=len(seeds) * clips, visible=clips > 1)
    return defense.choose_clip(
        setup.problem,
        setup.clients,
        progress=lambda done: bars.update(task, completed=done),
    )


def _train(setup: Setup, bars: Progress, part: StageCache) -> Transcript:
    config = setup.config
    num_rounds = config.train.num_rounds
    task = bars.add_task(f"rounds {setup.label}", total=num_rounds)
    run = federation.train(
        setup.problem,
        chunk=max(1, num_rounds // 20),
        progress=lambda done: bars.update(task, completed=done),
        states=part.states("train"),
        record_dtype=config.run.record_dtype,
    )
    return run.transcript


def _losses(labels, setup: Setup, seen: Transcript) -> list[Row]:
    """Loss of every model that was sent, and what the last explains, on all rows."""
    clients, seeds = setup.clients, setup.config.run.seeds
    sets = {"train": (clients.rows, clients_lib.row_mask(clients))}
    if clients.test is not None:
        sets["test"] = (clients.test, clients.test_mask)
    rows = []
    for name, (each, mask) in sets.items():
        curves = federation.loss_curve(setup.problem, seen.params, each, mask)
        task = setup.table.task
        ends = {fit.METRIC: fit.explained(curves[:, -1], each.y, mask, task)}
        if task != "regression":
            given = jax.tree.map(lambda leaf: leaf[:, -1], seen.params), each, mask
            apply = setup.problem.model.apply
            ends[fit.RIGHT] = federation.classes_right(apply, task, *given)
        for at, (seed, curve) in enumerate(zip(seeds, curves, strict=True)):
            settings = [f"round_{int(number)}" for number in seen.round[at]]
            count = mask[at].sum()
            rows += [
                labels.row("none", setting, seed, f"{name}_loss", value, count)
                for setting, value in zip(settings, curve, strict=True)
            ]
            rows += [
                labels.row("none", settings[-1], seed, f"{name}_{end}", of[at], count)
                for end, of in ends.items()
            ]
    return rows


def _attack(
    setup: Setup, labels: Labels, seen: Transcript, shared: Shared, bars: Progress,
    part: StageCache, seconds: stages.Seconds,
) -> kinds.Found:  # fmt: skip
    """Every attack that was asked for, on every client of every seed."""
    adversary = eavesdrop(setup, seen, bars)
    scored = _scoring(setup, labels, adversary.messages.has_messages)
    del adversary
    asked = setup.config.attack.controls
    rows, guesses = baselines.majority(labels, scored.targets), []
    drawn = strangers.draw(setup) if "strangers" in asked else None
    told = baselines.Imputation([], None, None)
    if "imputation" in asked:
        with stages.stage(seconds, "imputation"):
            impute = functools.partial(
                baselines.imputed, setup, labels, scored.targets, drawn, shared, bars
            )
            types = baselines.Imputation, errors.Imputed, Row
            told = part.cached("imputation", impute, *types)
    rows += told.rows
    rows += ceilings.rows(setup, labels, scored.targets, rows, shared)
    scored = scored._replace(imputed=told.own)
    others = None
    if drawn is not None:
        compared = scored._replace(targets=drawn.targets, imputed=told.strangers)
        others = drawn, compared
        rows += strangers.rows(labels, drawn)
    for sight in setup.config.adversary.sights:
        found = _attack_as(setup, seen, sight, scored, others, bars, part, seconds)
        rows += found.rows
        guesses += found.guesses
    if {"active", "oracle"} <= set(setup.config.attack.kinds):
        # In some columns the paper's oracle equals its longest active attack.
        strongest = max(setup.config.active.report)
        rows += scoring.better(
            rows, "model_oracle_or_active", ("model_oracle", "oracle"),
            ("model", f"active_{strongest}"),
        )  # fmt: skip
    return kinds.Found(rows, guesses)


def _attack_as(
    setup: Setup, seen: Transcript, sight: Sight, scored: Scoring, others,
    bars: Progress, part: StageCache, seconds: stages.Seconds,
) -> kinds.Found:  # fmt: skip
    """Every attack by an adversary that sees so much."""
    adversary = eavesdrop(setup, seen, bars, sight)
    rows, guesses = [], []
    for name in kinds.chosen(setup):
        if refusals.applies(setup, name, sight):
            stage = name if sight == MESSAGES else f"{name} {sight.setting}"
            with stages.stage(seconds, stage):
                run = functools.partial(
                    kinds.run, name, setup, adversary, scored, others
                )
                found = part.cached(stage, run, kinds.Found, Guess, Row)
            kinds.check_new(name, rows, found.rows)
            rows += found.rows
            guesses += found.guesses
    if true_rows.are_asked_for(rows):
        stage = f"true rows {sight.setting}"
        with stages.stage(seconds, stage):
            beside = functools.partial(true_rows.rows, scored.labels, setup, adversary)
            rows += part.cached(stage, beside, Row)
    return kinds.Found(rows, guesses)


def _scoring(setup: Setup, labels: Labels, clients: np.ndarray) -> Scoring:
    """What scores the attacks on the clients that sent something."""
    assert setup.targets is not None
    scored = setup.targets._replace(mask=knowledge.of_rows(setup))
    return Scoring(
        labels,
        targets.only(scored, clients),
        setup.problem.loss_fn,
        setup.linear_regression,
        setup.config.attack.score == "pooled",
    )
