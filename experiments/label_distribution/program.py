"""Label-distribution inference under defenses (Rajani et al., 2023).

    python -m experiments.label_distribution
    python -m experiments.label_distribution --data_dir=FOLDER \\
        --flagfile=experiments/flags/label_distribution.mnist.flags

`--study=attack` trains Algorithm 1 on proxy rows and attacks clients of other rows,
under each of `--defense`, beside closed forms and the mean distribution, and trains
FedAvg with the same defenses for their cost (Figure 6). `--study=clusters` draws Figures
2 to 4 and puts numbers to them. Writes `rows.jsonl`, `manifest.json` and figures into
`--run_dir`.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.progress import Progress

from experiments import defense_options
from experiments.label_distribution import (
    attacking,
    clusters,
    defended,
    drawings,
    reporting,
)
from experiments.label_distribution import task as task_lib
from experiments.label_distribution.attacking import Preparation
from experiments.label_distribution.clients import Clients
from experiments.label_distribution.fedavg import Curve, Trainings
from experiments.label_distribution.reporting import Case
from experiments.label_distribution.scores import Attacked
from experiments.label_distribution.settings import Config, Settings, complete
from experiments.label_distribution.task import Task
from experiments.label_distribution.training import Programs
from experiments.report import COMMAND, figures
from fljax.attacks.label_distribution.shadow_clients import Pool
from fljax.defenses.parts import SpecError
from fljax.defenses.specs import Spec
from fljax.driver import config
from fljax.driver.config import ConfigError
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start
from fljax.driver.stage_cache import StageCache
from fljax.results import Row
from fljax.types import Params


class Prepared(NamedTuple):
    """The flags with nothing left open, what is known, the truth, and the defenses."""

    settings: Settings
    task: Task
    test: Pool
    specs: tuple[Spec, ...]


def start(settings: Settings) -> Start:
    """Fills in the paper's choices and refuses what does not fit together."""
    settings = complete(settings)
    return Start(settings.data.name, functools.partial(prepare, settings))


def prepare(settings: Settings) -> Prepared:
    """Reads the data and builds every defense."""
    task, test = task_lib.load(settings)
    return Prepared(settings, task, test, defended.read(settings.run, task))


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Runs the study."""
    settings, task, test, chosen = prepared
    if settings.run.study == "attack":
        rows, drawn, more = _attack(settings.run, task, test, chosen, output, bars)
    else:
        rows, drawn, more = _clusters(settings.run, task, output)
    return Results(
        rows,
        figures.rendered(drawn),
        files=task.files,
        manifest={"complete": config.to_flags(settings.run), **more},
        tables=reporting.tables(rows),
    )


_Found = tuple[list[Row], dict[str, Figure], dict[str, Any]]


def _attack(
    run: Config,
    task: Task,
    test: Pool,
    chosen: tuple[Spec, ...],
    output: Output,
    bars: Progress,
) -> _Found:
    cases, cache = [], output.cache(task.files)
    bar = bars.add_task("clients", total=_clients(run, chosen))

    def progress(count):
        bars.advance(bar, count)

    programs = Programs(run, task)
    clients = Clients(run, test, programs)
    preparation = Preparation(run, task, programs, progress)
    utility = run.num_rounds and Trainings(run, task, test, run.num_rounds, run.trials)
    early = run.attack_round and Trainings(
        run, task, test, run.attack_round, len(run.seeds)
    )
    total = len(chosen) * run.num_rounds * run.trials
    rounds = bars.add_task("FedAvg rounds", total=total, visible=bool(total))

    def attack(spec: Spec) -> list[Attacked]:
        models = early.models(spec) if early else [task.init(s) for s in run.seeds]
        pairs = zip(run.seeds, models, strict=True)
        return [
            _attacked(run, preparation, clients, spec, seed, sent, progress)
            for seed, sent in pairs
        ]

    def train(spec: Spec, part: StageCache) -> list[Curve]:
        states = part.states("rounds")
        return utility.curves(spec, lambda count: bars.advance(rounds, count), states)

    for number, spec in enumerate(chosen):
        part = cache.part(f"case{number}")
        name = str(spec)
        with output.stage(f"{name}: attack"):
            attacked = part.cached("attack", lambda s=spec: attack(s), Attacked)
        curves = []
        if utility:
            with output.stage(f"{name}: FedAvg"):
                fit = functools.partial(train, spec, part)
                curves = part.cached("fedavg", fit, Curve)
                part.forget("rounds")
        by_seed = dict(zip(run.seeds, attacked, strict=True))
        promises = defended.promises(run, task, spec)
        cases.append(Case(spec, by_seed, curves, promises))
    tested = len(test.y) if run.eval_rows is None else run.eval_rows
    return _results(task, cases, min(tested, len(test.y)))


def _attacked(
    run: Config,
    preparation: Preparation,
    clients: Clients,
    spec: Spec,
    seed: int,
    sent: Params,
    progress: Callable[[int], None],
) -> Attacked:
    """Predictions for every client of a seed, beside the truth.

    Raises:
      ConfigError: a client's training diverged.
    """
    adversary = preparation.adversary(spec, seed, sent)
    predicted, known = [], []
    for messages, truth in clients.messages(spec, seed, sent):
        if not np.isfinite(messages).all():
            raise ConfigError(
                f"--learning_rate: clients' training diverged with {run.learning_rate:g}"
            )
        predicted.append(attacking.predict(adversary, messages))
        known.append(truth)
        progress(len(messages))
    joined = {
        name: np.concatenate([each[name] for each in predicted])
        for name in predicted[0]
    }
    return Attacked(joined, *map(np.concatenate, zip(*known, strict=True)))


def _results(task: Task, cases: list[Case], eval_rows: int) -> _Found:
    rows = [row for case in cases for row in reporting.rows(task, case, eval_rows)]
    promised: dict[str, Any] = {}
    for case in cases:
        promised |= defense_options.promised(case.spec, case.promises)
    said = {"defense": promised} if promised else {}
    first = cases[0]
    title = f"{task.name}, {first.spec}: one client of each concentration"
    seed, example = next(iter(first.attacked.items()))
    drawn = drawings.attack_figures(rows)
    drawn["example_clients"] = drawings.example_figure(example, task.classes, title)
    shares = reporting.example_rows(task, first.spec, seed, example)
    return rows + shares, drawn, said


def _clusters(run: Config, task: Task, output: Output) -> _Found:
    with output.stage("clusters"):
        found = list(clusters.clouds(run, task))
    rows = [
        row
        for cloud in found
        for row in reporting.cloud_rows(
            task, cloud, clusters.measures(cloud, task.classes)
        )
    ]
    first = [cloud for cloud in found if cloud.seed == run.seeds[0]]
    title = f"{task.name}, {task.model_name}, rate {run.learning_rate:g}"
    figure = drawings.cloud_figure(first, task.classes, title)
    return rows, {"clusters": figure}, {}


def _clients(run: Config, chosen: tuple[Spec, ...]) -> int:
    """Shadow clients and clients that are trained."""
    prepared = run.basis_clients + run.train_clients
    aware = len(chosen) if "aware" in run.attackers else 0
    unaware = 0
    if "unaware" in run.attackers:
        others = chosen if run.attack_round else chosen[:1]
        unaware = sum(bool(spec) or not aware for spec in others)
    each = prepared * (aware + unaware) + run.test_clients * len(chosen)
    return each * len(run.seeds)


def describe(prepared: Prepared) -> Iterator[str]:
    """The size of everything that is trained."""
    (_, run), task, test, chosen = prepared
    count = attacking.parameters(task.init(run.seeds[0]))
    yield (
        f"{task.name}: {len(task.proxy.y)} proxy rows, {len(test.y)} rows of "
        f"clients, {task.model_name} of {count} parameters"
    )
    if run.study == "clusters":
        clients = len(clusters.KINDS) * run.cluster_clients * len(run.seeds)
    else:
        clients = _clients(run, chosen)
        rounds = run.num_rounds * run.trials * len(chosen)
        yield f"{len(chosen)} defenses, {rounds} rounds of FedAvg"
    yield f"{clients} clients of {defended.steps(run)} local steps"


PROGRAM = Program(
    name=reporting.EXPERIMENT,
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
    errors=(SpecError,),
)
