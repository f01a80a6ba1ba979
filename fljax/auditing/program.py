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

from collections.abc import Callable, Sequence
from typing import Any

from fljax import data, parallel, transcript
from fljax.attacks.estimates import (
    Estimates,
    LabelEstimate,
    NotApplicable,
    Prediction,
    Reconstruction,
)
from fljax.attacks.spec import AttackSpec
from fljax.auditing import attacking, inputs, library, reporting
from fljax.auditing import case as case_lib
from fljax.auditing import settings as s
from fljax.auditing.case import Case
from fljax.auditing.settings import Config
from fljax.driver import config as config_lib
from fljax.driver import console
from fljax.driver.output import Output

ERRORS = (data.DataError, transcript.TranscriptError)
_ESTIMATES = (Prediction, LabelEstimate, Reconstruction, NotApplicable)


def main() -> None:
    """Runs the audit that the flags ask for."""
    run(s.of_groups(config_lib.read))


def run(config: Config) -> None:
    """Reads, attacks, scores, and writes everything.

    Raises:
      ConfigError: the flags do not fit each other or the files.
      TranscriptError: the transcript is damaged, or not one of this model.
      DataError: the rows are damaged, or cannot be encoded.
    """
    attacks = attacking.chosen(config.audit.attacks)
    parallel.use_cpu_cores()
    flags: dict[str, Any] = {}
    for group in config:
        flags |= config_lib.to_flags(group)
    read = inputs.read(config.files, config.rows)
    out = Output(config.audit, reporting.EXPERIMENT, read.owned.table.name, flags)
    with out.stage("data"):
        case = case_lib.prepare(config, read)
    if config.audit.dry_run:
        console.screen().print(*_sizes(config, case), sep="\n", markup=False)
        return
    with out.autosave.interruptible():
        keep = out.cache(read.files, repr(read.recording.about)).cached
        estimates = _attack(config, case, attacks, out, keep)
    with out.stage("score"):
        findings = library.score(config, read, case, estimates)
    reporting.write(out, findings)
    out.show(*reporting.screen(findings))


def _attack(
    config: Config,
    case: Case,
    attacks: Sequence[AttackSpec],
    out: Output,
    keep: Callable[..., Any],
) -> Estimates:
    """What every attack estimates; one that a stopped audit has finished is not run."""
    with console.progress() as bars:
        bar = bars.add_task("attacks", total=len(attacks))

        def kept(name, compute):
            found = keep(name, compute, *_ESTIMATES)
            bars.advance(bar)
            return found

        return attacking.estimates(
            case.view, attacks, s.of_attacks(config.audit), out.stage, kept
        )


def _sizes(config: Config, case: Case) -> list[str]:
    columns, sizes = case.encoding.columns, case.view.sizes
    assert case.view.messages is not None
    count = case.view.messages.count
    values = "a number" if columns.continuous else ", ".join(columns.categories)
    return [
        (
            f"{len(sizes)} clients of {sizes.min()} to {sizes.max()} rows, "
            f"{count.min()} to {count.max()} messages of each"
        ),
        f"inputs of {config.training.model}: {', '.join(columns.names)}",
        f"sensitive: {config.files.sensitive}, {values}",
    ]


def define(flags: Callable = config_lib.define) -> None:
    """Registers the flags."""
    for group in s.GROUPS:
        flags(group)
