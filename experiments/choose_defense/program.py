"""Which defense, and which epsilon, do I need? (a grid of defenses, and a stated rule)

    python -m experiments.choose_defense --flagfile=experiments/flags/choose_defense.diabetes.flags
    python -m experiments.choose_defense --data_name=csv --data_path=patients.csv \
        --data_target=charges --data_sensitive=smoker --partition_kind=iid

Trains the federation once with every defense of `--defenses`, attacks each training as
`experiments.aia` does, with attacks that know the defense, and recommends one: of what is
leaked, explained, bounded and promised, drawn in `choice.svg`. Rates, clips, noise and
seeds share compiled programs. Trainings of one seed begin alike and draw batches,
participants and noise apart: clips that were tried in the same noise would give it away.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.progress import Progress

from experiments import defense_options
from experiments.aia import baselines, pipeline
from experiments.aia import program as aia
from experiments.aia.setup import Settings as Training
from experiments.aia.setup import Setup
from experiments.choose_defense import audited, candidates, choice_figure, reporting
from experiments.choose_defense.rule import Candidate, Choice, Wishes, choose
from experiments.choose_defense.settings import ChoiceConfig, Settings
from experiments.report import COMMAND, figures
from experiments.tabular import federation
from fljax.defenses import specs
from fljax.defenses.parts import SpecError
from fljax.defenses.specs import Spec
from fljax.driver import stages
from fljax.driver.config import ConfigError
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start
from fljax.results import Row

_NAME = "choose_defense"
_FIRST = (
    "data_name", "data_path", "data_target", "data_sensitive", "data_drop",
    "data_missing", "partition_kind", "partition_column", "partition_clients",
    "model_hidden", "learning_rate", "batch_size", "num_rounds", "local_epochs",
    "defenses", "tolerance", "most_beyond", "attack_kinds", "seeds", "run_dir", "dry_run",
)  # fmt: skip


class Prepared(NamedTuple):
    """The grid, and every training of it dealt and scheduled."""

    choice: ChoiceConfig
    grid: tuple[Spec, ...]
    trainings: aia.Prepared


def start(config: Settings) -> Start:
    """Reads the grid and the table.

    Raises:
      ConfigError: for flags that do not fit.
    """
    *training, choice = config
    told = Training(*training)
    grid = _grid(told, choice)
    sweep = "; ".join(f"defense={spec}" for spec in grid)
    told = told._replace(run=dataclasses.replace(told.run, sweep=sweep))
    first = aia.start(told, apart=True)  # so that what is released composes

    def prepare() -> Prepared:
        trainings = first.prepare()
        truth = trainings.points[0].targets
        if choice.most_beyond is not None and truth is not None and truth.continuous:
            raise ConfigError(
                "--most_beyond: expected none with a sensitive number, for bounds are of "
                f"accuracies; got {choice.most_beyond:g}"
            )
        return Prepared(choice, grid, trainings)

    return Start(first.name, prepare)


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Trains and attacks with every defense, then applies the rule."""
    choice, grid, (config, table, points) = prepared
    cache, shared = output.cache(table.files), baselines.Shared()
    rows, failed = [], {}
    for number, each in enumerate(points):
        part = cache.part(f"point{number}")
        try:
            outcome = pipeline.run(each, bars, part, shared)
        except federation.Diverged as error:
            failed[each.label.partition("=")[2]] = str(error)
            continue
        output.seconds[each.label] = _summed(outcome.seconds)
        rows += [*outcome.rows, *candidates.epsilon_rows(each, grid)]
    if not rows:
        raise federation.Diverged(next(iter(failed.values())))
    found = candidates.of_rows(rows)
    wishes = Wishes(choice.tolerance, choice.most_beyond)
    chosen = choose(found, wishes)
    proven = _audited(prepared, _to_audit(choice, found, chosen), output, bars)
    rows += proven
    drawn = choice_figure.choice(found, chosen, figures.drawing.title(rows))
    return Results(
        [row._replace(experiment=_NAME) for row in rows],
        figures.rendered({} if drawn is None else {"choice": drawn}),
        files=table.files,
        manifest=reporting.manifest(
            found, chosen, wishes, failed, len(config.run.seeds)
        ),
        tables=[
            *reporting.tables(
                found, chosen, wishes, failed, len(config.run.seeds), proven
            ),
            *reporting.audited(proven),
        ],
    )


def _to_audit(
    choice: ChoiceConfig, found: Sequence[Candidate], chosen: Choice
) -> list[Candidate]:
    if choice.audit_trainings is None:
        return []
    if choice.audited == "all":
        return [each for each in found if math.isfinite(each.epsilon)]
    return [] if chosen.chosen is None else [chosen.chosen]


def _audited(
    prepared: Prepared, which: Sequence[Candidate], output: Output, bars: Progress
) -> list[Row]:
    """Lower bounds of the epsilon of some defenses, by observer."""
    (choice, _, (_, table, points)), rows = prepared, []
    count = choice.audit_trainings or 0
    bar = bars.add_task("audit", total=count * len(which))
    cache, setups = output.cache(table.files), {each.label: each for each in points}
    for number, each in enumerate(which):
        setup, done = setups[f"defense={each.defense}"], number * count

        def progress(more: int, done: int = done) -> None:
            bars.update(bar, completed=done + more)

        def prove(setup: Setup = setup) -> list[Row]:
            return audited.rows(setup, count, progress)

        with output.stage(f"audit {each.defense}"):
            rows += cache.part(f"audit{number}").cached("audit", prove, Row)
        progress(count)
    return rows


def describe(prepared: Prepared) -> Iterator[str]:
    """The grid, and what `experiments.aia` says of its trainings."""
    yield f"{len(prepared.grid)} trainings of every seed"
    if count := prepared.choice.audit_trainings:
        each = len(prepared.grid) - 1 if prepared.choice.audited == "all" else 1
        yield f"up to {each} audits of {count} trainings"
    yield from aia.describe(prepared.trainings)


def _grid(training: Training, choice: ChoiceConfig) -> tuple[Spec, ...]:
    """No defense, and all that were asked for."""
    for flag, given in (
        ("defense", training.defense.defense != "none"),
        ("sweep", bool(training.run.sweep)),
        ("transcript", training.run.transcript is not None),
        ("paper_table", training.run.paper_table is not None),
    ):
        if given:
            raise ConfigError(f"--{flag}: expected none, the grid is in --defenses")
    for flag, given in (
        ("stop_at_epsilon", training.defense.stop_at_epsilon is not None),
        ("save_guesses", training.run.save_guesses),
        ("save_transcript", training.run.save_transcript),
    ):
        if given:
            raise ConfigError(f"--{flag}: of experiments.aia alone, not of a grid")
    if not training.attack.kinds:
        raise ConfigError(
            "--attack_kinds: expected attacks, by which defenses are judged"
        )
    if not training.attack.knows_defense:
        raise ConfigError("--attack_knows_defense: expected true, attacks that know it")
    asked = defense_options.parse_all(choice.defenses, "--defenses")
    if choice.audit_trainings:
        for spec in asked:
            # Canaries are rows that may be left out of a batch.
            if specs.has_noise(spec) and not specs.needs_poisson(spec):
                raise ConfigError(
                    "--audit_trainings: expected defenses that protect records of "
                    f"Poisson batches, got {spec}"
                )
        if training.run.record != "all":
            raise ConfigError("--record: expected all rounds with --audit_trainings")
        if training.run.max_clients_in_memory is not None:
            raise ConfigError(
                "--max_clients_in_memory: expected none with --audit_trainings"
            )
    if not any(asked):
        raise ConfigError("--defenses: expected at least one defense, got none")
    return specs.NONE, *(spec for spec in asked if spec)


def _summed(seconds: stages.Seconds) -> dict[str, float]:
    """Of all stages of a training."""
    return {
        what: sum(each[what] for each in seconds.values())
        for what in ("compile", "run")
    }


PROGRAM = Program(
    name=_NAME,
    module=__name__,
    settings=Settings,
    first=_FIRST,
    unprefixed=("train", "defense", "run", "adversary", "choice"),
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
    errors=(federation.Diverged, SpecError),
)
