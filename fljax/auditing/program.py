"""Audits somebody's own federated training, from a transcript of any framework.

    fljax-audit --transcript=runs/seen --known=rows.csv --target=y \\
        --sensitive=married --model=mlp:128

Reads the transcript (`fljax.transcript`) and the rows of the audited clients, takes the
sensitive column out of the rows, runs every attack that applies on what is left, and
only then compares with that column:

    read -> split into AdversaryView and Truth -> attacks(view) -> score(truth)

Writes `rows.jsonl`, `manifest.json`, `records.csv` and `report.html` into `--run_dir`.
What counts as a leak is said in `fljax.verdicts`, how columns become inputs in `rows`,
and how a transcript's arrays find their place in the model in `architecture`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rich.progress import Progress

from fljax import printable, transcript
from fljax.attacks.estimates import (
    LabelEstimate,
    NotApplicable,
    Prediction,
    Reconstruction,
)
from fljax.attacks.spec import AttackSpec
from fljax.auditing import attacking, effort, inputs, library, reporting
from fljax.auditing import case as case_lib
from fljax.auditing.case import Case
from fljax.auditing.inputs import Inputs
from fljax.auditing.settings import Config
from fljax.defenses.parts import SpecError
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start

_ESTIMATES = (Prediction, LabelEstimate, Reconstruction, NotApplicable)


FAILED = 3  # exit code of an outcome that a user named


class Prepared(NamedTuple):
    """What was asked for, and what there is to answer it."""

    config: Config
    attacks: Sequence[AttackSpec]
    read: Inputs
    case: Case


def start(config: Config) -> Start:
    """Reads the rows; the transcript follows."""
    attacks = attacking.chosen(config.audit.attacks)
    read = inputs.read(config.files, config.rows)

    def prepare() -> Prepared:
        case = case_lib.prepare(config, read)
        effort.check(case, attacks, config.audit)
        return Prepared(config, attacks, read, case)

    return Start(read.owned.table.name, prepare)


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Attacks, and only then scores."""
    config, attacks, read, case = prepared
    cache = output.cache(read.files, repr(read.recording.about))
    asked = set(config.audit.controls)
    again = ("strangers" in asked and case.strangers is not None) + sum(
        name in asked for name in ("permuted", "others")
    )
    predictions = sum(each.gives is Prediction for each in attacks)
    bar = bars.add_task("attacks", total=len(attacks) + again * predictions)

    def keep(name, compute):
        found = cache.cached(name, compute, *_ESTIMATES)
        bars.advance(bar)
        return found

    findings = library.attack_and_score(
        config, read, case, attacks, {}, output.stage, keep
    )
    failed = findings.outcome in config.audit.fail_on
    return reporting.results(findings)._replace(code=FAILED if failed else 0)


def describe(prepared: Prepared) -> list[str]:
    """The size of the audit."""
    config, attacks, read, case = prepared
    columns, sizes = case.encoding.columns, case.view.sizes
    assert case.view.messages is not None
    count = case.view.messages.count
    values = "a number" if columns.continuous else ", ".join(columns.categories)
    named = [
        f"client {id_} is {read.owned.names[id_]}, {size} rows"
        for id_, size in zip(case.view.clients.tolist(), sizes, strict=True)
        if id_ in read.owned.names
    ]
    return [
        *named,
        (
            f"{len(sizes)} clients of {_ends(sizes)} rows, "
            f"{_ends(count)} messages of each"
        ),
        f"inputs of {config.training.model}: "
        + ", ".join(map(printable.quoted, columns.names)),
        f"sensitive: {config.files.sensitive}, {values}",
        f"at most {effort.steps(case, attacks, config.audit)} simulated steps a message",
        *case.notes,
    ]


def _ends(numbers) -> str:
    least, most = numbers.min(), numbers.max()
    return str(least) if least == most else f"{least} to {most}"


PROGRAM = Program(
    name=reporting.EXPERIMENT,
    module=__name__,
    settings=Config,
    unprefixed=Config._fields,
    start=start,
    work=work,
    describe=describe,
    errors=(transcript.TranscriptError, SpecError),
)
