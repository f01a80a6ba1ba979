"""Attribute inference against federated training (Diana et al., AAAI-25).

    python -m experiments.aia --flagfile=experiments/flags/aia.diabetes.mlp.flags

Trains a federation, eavesdrops on it, infers the sensitive attribute of every client's
rows, and writes `rows.jsonl`, `manifest.json` and figures into `--run_dir`.
"""

import dataclasses
import os
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments import clients as clients_lib
from experiments import (
    config,
    console,
    federation,
    model_based,
    passive,
    run_dir,
    scoring,
)
from experiments import settings as s
from experiments.sweep import points
from fljax import data, figures, results, transcript

_GROUPS = {
    "data": s.DataConfig,
    "partition": s.PartitionConfig,
    "model": s.ModelConfig,
    "train": s.TrainConfig,
    "attack": s.AttackConfig,
    "run": s.RunConfig,
}
_PREFIX = {"train": "", "run": ""}
_ERRORS = (data.DataError, federation.Diverged, transcript.TranscriptError)


class Settings(NamedTuple):
    """All that a run was told."""

    data: s.DataConfig
    partition: s.PartitionConfig
    model: s.ModelConfig
    train: s.TrainConfig
    attack: s.AttackConfig
    run: s.RunConfig

    def flags(self) -> dict[str, Any]:
        """Flag name -> value."""
        flat = {}
        for name, group in self._asdict().items():
            flat |= config.to_flags(group, _PREFIX.get(name, name))
        return flat


class Outcome(NamedTuple):
    """Results of one point: rows, stage times, and the transcript's seeds."""

    rows: list[results.Row]
    seconds: dict[str, dict[str, float]]
    trained: federation.Trained


def main() -> None:
    """Runs every point of the sweep and writes the results."""
    told = Settings(
        *(config.read(cls, _PREFIX.get(name, name)) for name, cls in _GROUPS.items())
    )
    if jax.config.jax_num_cpu_devices < 0:
        jax.config.update("jax_num_cpu_devices", os.cpu_count())
    begin = time.perf_counter()
    table = clients_lib.load_table(told.data)
    name = f"{table.name}.{told.model.name}"
    folder, digest = run_dir.claim(told.run.run_dir, "aia", name, told.flags())
    rows, seconds = [], {}
    for label, at in points(told, told.run.sweep):
        prepared = _prepare(table, at)
        if told.run.dry_run:
            _describe(at, label, *prepared)
            continue
        outcome = _run(table, at, label, *prepared)
        rows += outcome.rows
        seconds[label or "run"] = outcome.seconds
        if told.run.save_transcript:
            _save_transcripts(folder, label, at, outcome.trained)
    if told.run.dry_run:
        return
    _write(folder, rows)
    results.write_manifest(
        folder / "manifest.json",
        {
            "experiment": "aia",
            "digest": digest,
            "flags": told.flags(),
            "data": [dataclasses.asdict(file) for file in table.files],
            "seconds": seconds | {"total": time.perf_counter() - begin},
            **run_dir.environment(),
        },
    )
    out = console.screen()
    out.print(console.results_table(rows, told.run.paper_table))
    out.print(f"results, figures and manifest are in {folder}")


def _prepare(table: data.Table, told: Settings):
    seeds = told.run.seeds
    if len(set(seeds)) < len(seeds) or not seeds:
        raise config.ConfigError(f"--seeds: expected distinct seeds, got {seeds}")
    clients = clients_lib.gather(table, told.data, told.model, told.partition, seeds)
    last = told.train.num_rounds - 1
    record = None if told.run.record == "all" else [last]
    problem = federation.pose(clients, told.model, told.train, seeds, record)
    return clients, problem


def _run(table, told: Settings, label: str, clients, problem) -> Outcome:
    seeds = told.run.seeds
    labels = scoring.Labels("aia", table.name, told.model.name, "none", label, seeds)
    keys = jax.vmap(jax.random.key)(np.asarray(seeds))
    with console.progress() as bars:
        num_rounds = told.train.num_rounds
        task = bars.add_task(f"training rounds {label}", total=num_rounds)
        trained = federation.train(
            problem,
            clients,
            keys,
            chunk=max(1, num_rounds // 20),
            progress=lambda done: bars.update(task, completed=done),
        )
        seconds = {
            "train": {
                "compile": trained.compile_seconds,
                "run": trained.seconds,
            }
        }
        rows = _losses(labels, problem, clients, trained, seconds)
        if clients.datasets[0].attribute is not None:
            rows += _attack(
                labels, told, problem, clients, trained, keys, bars, seconds
            )
    return Outcome(rows, seconds, trained)


def _attack(labels, told, problem, clients, trained, keys, bars, seconds):
    seen = trained.run.transcript
    box = passive.inbox(seen, clients.sizes.shape[1])
    pooled = told.attack.score == "pooled"
    goal = scoring.target(clients, pooled)
    known = jax.tree.map(scoring.pool, clients.known) if pooled else clients.known
    attribute = clients.datasets[0].attribute
    candidates = np.stack([d.attribute.candidates for d in clients.datasets])
    is_linear = (
        told.model.name == "linear" and clients.datasets[0].table.task == "regression"
    )
    victims = model_based.Victims(
        problem, known, goal, candidates, attribute.kind, is_linear, labels
    )
    rows = scoring.baseline(labels, goal)

    def timed(stage, call):
        begin = time.perf_counter()
        found = call()
        seconds[stage] = {"run": time.perf_counter() - begin}
        return found

    if "model" in told.attack.kinds:
        returned, sent = passive.last_models(seen, box)
        for name, params in (("model", returned), ("model_global", sent)):
            rows += timed(name, lambda n=name, p=params: model_based.attack(
                victims, n, "passive", p))  # fmt: skip
    if "grad" in told.attack.kinds and attribute.kind != "continuous":
        task = bars.add_task("gradient attack, seeds", total=len(keys))
        found, compiling = timed("grad", lambda: passive.gradient_grid(
            problem, seen, box, clients.known, candidates,
            jax.vmap(jax.random.fold_in, (0, None))(keys, 1), told.attack,
            progress=lambda done: bars.update(task, completed=done),
        ))  # fmt: skip
        seconds["grad"]["run"] -= compiling
        seconds["grad"]["compile"] = compiling
        own = scoring.target(clients, pooled=False)
        rows += scoring.grid(labels, found, own)
    if "reconstruct" in told.attack.kinds:
        rows += timed("reconstruct", lambda: model_based.reconstruct(
            victims, clients, seen, box, told.attack))  # fmt: skip
    return rows


def _losses(labels, problem, clients, trained, seconds):
    begin = time.perf_counter()
    seen = trained.run.transcript
    sets = {"train_loss": (clients.rows, clients_lib.row_mask(clients))}
    if clients.test is not None:
        sets["test_loss"] = (clients.test, clients.test_mask)
    rows = []
    for metric, (each, mask) in sets.items():
        curve = federation.loss_curve(problem, seen.params, each, mask)
        for seed, values in enumerate(curve):
            for number, value in zip(np.asarray(seen.round)[seed], values, strict=True):
                rows.append(
                    labels.row(
                        seed,
                        "none",
                        f"round_{number}",
                        "all",
                        metric,
                        value,
                        mask[seed].sum(),
                    )  # fmt: skip
                )
    seconds["losses"] = {"run": time.perf_counter() - begin}
    return rows


def _describe(told: Settings, label: str, clients, problem) -> None:
    """The resolved configuration with sizes and an estimate of the memory."""
    schedule = problem.schedule
    seeds, recorded, num_slots = schedule.recorded_clients.shape
    params = jax.eval_shape(problem.model.init, jax.random.key(0))
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    rows = sum(leaf.nbytes for leaf in jax.tree.leaves(clients.rows))
    seen = 4 * seeds * recorded * (1 + num_slots) * count
    out = console.screen()
    for name, value in told.flags().items():
        out.print(f"--{name}={value}", highlight=False)
    out.print(
        f"point {label or '(only one)'}: {seeds} seeds, {clients.sizes.shape[1]} "
        f"clients of {clients.sizes.min()} to {clients.sizes.max()} rows, "
        f"{count} parameters, {schedule.num_rounds} rounds of "
        f"{schedule.slots.count.shape[2]} steps on {schedule.num_lanes} lanes"
    )
    out.print(
        f"memory: rows {rows / 1e6:.1f} MB, transcript {seen / 1e6:.1f} MB, lanes "
        f"{8 * seeds * schedule.num_lanes * count / 1e6:.1f} MB"
    )


def _save_transcripts(folder, label: str, told: Settings, trained) -> None:
    about = config.to_flags(told.train) | config.to_flags(told.model, "model")
    for index, seed in enumerate(told.run.seeds):
        one = jax.tree.map(lambda leaf, i=index: np.asarray(leaf[i]), trained.run)
        stem = "-".join(filter(None, ["transcript", label, f"seed{seed}"]))
        transcript.save(folder / stem, one.transcript, about)


def _write(folder, rows: list[results.Row]) -> None:
    results.write_rows(folder / "rows.jsonl", rows)
    drawn = {
        "accuracy_by_attack": figures.accuracy_by_attack(rows),
        "loss_by_round": figures.loss_by_round(rows),
        "accuracy_by_size": figures.accuracy_by_size(rows),
    }
    for name, figure in drawn.items():
        if figure is not None:
            figures.save(figure, folder / f"{name}.png")


for _name, _cls in _GROUPS.items():
    config.define(_cls, _PREFIX.get(_name, _name))

if __name__ == "__main__":
    config.app_main(main, _ERRORS)
