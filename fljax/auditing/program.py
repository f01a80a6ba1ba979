"""Audits somebody's own federated training, from a transcript of any framework.

    python -m fljax.audit --transcript=runs/seen --known=rows.csv --target=y \\
        --sensitive=married --model=mlp:128

Reads the transcript (`fljax.transcript`) and the rows of the audited clients, takes the
sensitive column out of the rows, runs every attack that applies on what is left, and
only then compares with that column:

    load -> split into Known and Truth -> attack(Evidence) -> score(Truth)

Writes `rows.jsonl`, `manifest.json` and `report.html` into `--run_dir`. What
counts as a leak is said in `scoring`, how columns become inputs in `rows`, and how a
transcript's arrays find their place in the model in `architecture`.
"""

import functools
import pathlib
from collections.abc import Callable
from typing import Any

from fljax import data, files, parallel, transcript
from fljax.auditing import attributes, inversion, labels, reporting, scoring, table
from fljax.auditing import case as case_lib
from fljax.auditing import settings as s
from fljax.auditing.case import Case
from fljax.auditing.evidence import (
    Answers,
    Evidence,
    Guess,
    Rebuilt,
    Shares,
    Skipped,
)
from fljax.auditing.settings import Told
from fljax.data.fetch import read_local
from fljax.driver import config, console
from fljax.driver.config import ConfigError
from fljax.driver.output import Output
from fljax.driver.stage_cache import StageCache

_GROUPS = (s.FilesConfig, s.RowsConfig, s.TrainingConfig, s.AuditConfig)
ERRORS = (data.DataError, transcript.TranscriptError)
_ANSWERS = (Guess, Shares, Rebuilt, Skipped)
_ATTACKS: dict[str, Callable[[Evidence], Answers]] = {
    "model": attributes.model,
    "grad": attributes.grad,
    "linear_inversion": lambda e: attributes.trajectory_matching(e, first_order=True),
    "trajectory": lambda e: attributes.trajectory_matching(e, first_order=False),
    "reconstruct": attributes.reconstruction,
    "label_distribution": labels.shares,
    "inversion": inversion.rebuild,
}


def main() -> None:
    """Runs the audit that the flags ask for."""
    run(Told(*(config.read(group) for group in _GROUPS)))


def run(told: Told) -> None:
    """Reads, attacks, scores, and writes everything.

    Raises:
      ConfigError: the flags do not fit each other or the files.
      TranscriptError: the transcript is damaged, or not one of this model.
      DataError: the rows are damaged, or cannot be encoded.
    """
    if not told.audit.attacks:
        raise ConfigError("--attacks: expected at least one")
    parallel.use_cpu_cores()
    flags: dict[str, Any] = {}
    for group in told:
        flags |= config.to_flags(group)
    read = table.read(told.files, told.rows)
    out = Output(told.audit, reporting.EXPERIMENT, read.table.name, flags)
    with out.stage("data"):
        case = case_lib.prepare(told, read)
    if told.audit.dry_run:
        console.screen().print(*_sizes(told, case), sep="\n", markup=False)
        return
    with out.autosave.interruptible():
        part = out.cache(_files(told, case), repr(case.received.about))
        answers = attack(case.evidence, out, part)
    with out.stage("score"):
        found = scoring.lines(answers, case.truth, continuous=case.evidence.continuous)
    reporting.write(out, _labels(told, read.table.name, case), found)


def attack(evidence: Evidence, out: Output, part: StageCache) -> Answers:
    """What every attack that was asked for says; none has the truth.

    Args:
      evidence: what the adversary has.
      out: whose clock runs.
      part: what an audit of the same files that was stopped has finished.
    """
    chosen = [name for name in _ATTACKS if name in evidence.told.attacks]
    answers: Answers = {}
    with console.progress() as bars:
        bar = bars.add_task("attacks", total=len(chosen))
        for name in chosen:
            with out.stage(name):
                run = functools.partial(_ATTACKS[name], evidence)
                answers |= part.cached(name, run, *_ANSWERS)
            bars.advance(bar)
    return answers


def _labels(told: Told, name: str, case: Case) -> reporting.Labels:
    box = case.evidence.messages
    return reporting.Labels(
        data=name,
        model=told.training.model,
        defense=case.evidence.pace.defense,
        seed=told.audit.seed,
        clients=case.clients,
        used=box.count,
        left_out=box.left_out,
        files=_files(told, case),
        sensitive=told.files.sensitive,
        target=told.files.target,
    )


def _files(told: Told, case: Case) -> list[data.FileRecord]:
    """What was read."""
    tables = [path for path in (told.files.known, told.files.proxy) if path]
    seen = pathlib.Path(f"{case.received.stem}.npz")
    digest = files.sha256(seen)
    return [
        *(read_local(path).record for path in tables),
        data.FileRecord(name=seen.name, sha256=digest, origin="local"),
    ]


def _sizes(told: Told, case: Case) -> list[str]:
    box, columns = case.evidence.messages, case.encoding.columns
    sizes = case.evidence.sizes
    who = f"{len(sizes)} clients of {sizes.min()} to {sizes.max()} rows"
    values = "a number" if columns.continuous else ", ".join(columns.categories)
    return [
        f"{who}, {box.count.min()} to {box.count.max()} messages of each",
        f"inputs of {told.training.model}: {', '.join(columns.names)}",
        f"sensitive: {told.files.sensitive}, {values}",
    ]


def define(flags: Callable = config.define) -> None:
    """Registers the flags."""
    for group in _GROUPS:
        flags(group)
