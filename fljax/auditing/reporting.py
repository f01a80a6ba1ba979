"""What an audit leaves behind: rows, manifest, records, a page, and a table on screen."""

import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from fljax import certainty, fit, metrics, verdicts
from fljax.auditing import advice as advice_lib
from fljax.auditing import cells, page
from fljax.auditing.advice import Advice
from fljax.auditing.findings import Audited, Findings
from fljax.auditing.lines import Line
from fljax.driver import console, run_folder, screen_tables
from fljax.driver.config import ConfigError
from fljax.driver.option import FILES, FolderFlags
from fljax.driver.output import Output, Results
from fljax.results import Labels, Row, finite

# References that each attack has of its own -> the end of its name in rows.
_OWN = {
    verdicts.STRANGERS: "strangers",
    verdicts.PERMUTED: "permuted",
    verdicts.OTHERS: "others",
}

EXPERIMENT = "audit"


def save(findings: Findings, folder: str | os.PathLike) -> None:
    """Writes everything into a folder, which it claims as a program does.

    Raises:
      ConfigError: the folder holds another audit, or one of other rows or messages.
    """
    audited = findings.audited
    chosen = FolderFlags(run_dir=os.fspath(folder))
    output = Output(chosen, EXPERIMENT, audited.data, audited.flags)
    _check_files(output.folder / run_folder.MANIFEST, audited)
    output.write(results(findings))


def _check_files(manifest: pathlib.Path, audited: Audited) -> None:
    """Flags do not tell which rows and messages in memory are meant."""
    if not manifest.is_file():
        return
    before = [each["sha256"] for each in json.loads(manifest.read_text())["data"]]
    if before != [file.sha256 for file in audited.files]:
        raise ConfigError(
            f"--run_dir: {manifest.parent} holds an audit of other rows or messages; "
            "choose another folder"
        )


def results(findings: Findings) -> Results:
    """Rows, manifest, records and page; table and notes for the screen."""
    records = findings.records.to_csv(index=False)
    return Results(
        list(_rows(findings)),
        pages={"records.csv": records, "report.html": _page(findings)},
        files=findings.audited.files,
        manifest={
            "outcome": findings.outcome,
            "verdicts": findings.verdicts,
            "gains": {
                each.attack: _gains(each) for each in findings.lines if each.gains
            },
            "notes": findings.notes,
        },
        tables=screen(findings),
    )


def _gains(line: Line) -> dict[str, list[float | None]]:
    """Beyond each reference: the mean, and the ends of the verdict's interval."""
    return {g.name: [finite(e) for e in (g.mean, g.low, g.high)] for g in line.gains}


def screen(findings: Findings) -> list[Table | Text]:
    """The table and its notes, for a terminal."""
    audited = findings.audited
    shown = screen_tables.empty(Text(f"audit: {audited.data} {audited.model}"))
    screen_tables.add_texts(shown, "attack", "metric")
    capped = audited.ceiling.percent is not None
    compared = cells.have_others(findings.lines)
    screen_tables.add_numbers(
        shown, "value [95 %]", "majority", "imputation", "strangers",
        *(["others"] * compared), *(["at most"] * capped),
    )  # fmt: skip
    shown.add_column("verdict", min_width=len(verdicts.NOT_SHOWN))  # may wrap
    for line in findings.lines:
        shown.add_row(
            line.attack, cells.METRICS.get(line.metric, ""), cells.number(line.total),
            cells.reference(line.total),
            cells.reference(line.total, verdicts.IMPUTATION),
            cells.reference(line.total, verdicts.STRANGERS),
            *([cells.reference(line.total, verdicts.OTHERS)] * compared),
            *([cells.ceiling(line)] * capped), Text(line.verdict),
        )  # fmt: skip
    details = [
        f"{each.attack}: {each.detail}" for each in findings.lines if each.detail
    ]
    said = [*map(Text, details), *map(Text, findings.notes)]
    if findings.leaks:
        advice = _advice(audited, audited.flags)
        said += [Text(f"What to do: {advice.why}"), console.command(advice.command)]
        said += [Text(advice.then)]
    return [*map(Text, findings.summary), shown, *said]


def _advice(audited: Audited, flags: Mapping[str, Any]) -> Advice:
    return advice_lib.what_to_do(
        flags, audited.members, audited.training, audited.num_rounds, audited.sees
    )


def _rows(findings: Findings) -> Iterator[Row]:
    audited = findings.audited

    labels = Labels(EXPERIMENT, audited.data, audited.model, audited.defense)

    def each(attack, setting, metric, values, counts):
        where = attack, setting, audited.seed, metric
        clients = audited.clients.tolist()
        *own, mean = labels.by_client(*where, values, counts, clients)
        return [*own, mean._replace(n=metrics.rows_of_mean(counts))]

    begun = set()
    for line in findings.lines:
        if line.total is None:
            continue
        counts = [number.n for number in line.clients]
        for name in line.total.references:
            own = name in _OWN
            what = f"{line.attack}_{_OWN[name]}" if own else name
            if (what, line.metric) not in begun:
                begun.add((what, line.metric))
                values = [number.references[name] for number in line.clients]
                setting = line.setting if own else "baseline"
                yield from each(what, setting, line.metric, values, counts)
        where = line.attack, line.setting
        yield from each(*where, line.metric, [c.value for c in line.clients], counts)
        for end in ("low", "high"):
            value = getattr(line.total, end)
            metric, worth = f"{line.metric}_{end}", metrics.rows_of_mean(counts)
            yield labels.row(*where, audited.seed, metric, value, worth)
        for metric, values in line.diagnostics.items():
            yield from each(*where, metric, values, counts)
        if line.records is not None:
            yield from _per_record(labels, (*where, audited.seed), line, audited)
    if audited.ceiling.percent is not None:
        counts = [len(each) for each in audited.row_numbers]
        bound = "none", "defense", verdicts.CEILING, audited.ceiling.percent, counts
        yield from each(*bound)
    used = {
        "messages_used": audited.used,
        "messages_left_out": audited.left_out,
        f"train_{fit.METRIC}": audited.fit.explained,
    }
    if audited.fit.misfit is not None:
        used["misfit"] = audited.fit.misfit
    for metric, values in used.items():
        yield from each("none", "passive", metric, values, audited.used)


def _per_record(
    labels: Labels, about: tuple[str, str, int], line: Line, audited: Audited
) -> Iterator[Row]:
    """Scores over the records of each client, of all, and the calibration plot."""
    found = line.records
    assert found is not None
    pairs = zip(audited.clients, found.clients, found.counts, strict=True)
    for client, scores, count in pairs:
        for metric, value in scores.items():
            yield labels.row(*about, metric, value, count, int(client))
    for metric, value in found.scores.items():
        yield labels.row(*about, metric, value, sum(found.counts))
    for metric, percent, count in certainty.plotted(found.plot):
        yield labels.row(*about, metric, percent, count)


def _page(findings: Findings) -> str:
    audited: Audited = findings.audited
    settings = {
        name: value
        for name, value in audited.flags.items()
        # A page need not tell how a disk is organised.
        if name not in (*FILES, "run_dir") and value not in (None, "", [], ())
    }
    about = {
        "Data": audited.data,
        "Model": audited.model,
        "Defense": audited.defense,
        "Inferred": f"{audited.sensitive}; target {audited.target}",
        "Clients": ", ".join(findings.clients),
        "Files": "; ".join(f"{each.name} {each.sha256}" for each in audited.files),
        "Settings": ", ".join(f"{name} {value}" for name, value in settings.items()),
    }
    if audited.fit.misfit is not None:
        low, high = np.min(audited.fit.misfit), np.max(audited.fit.misfit)
        about["Misfit of messages and rows"] = (
            f"{low:.3g} to {high:.3g}, where about 1, or less, is expected"
        )
    advice = None
    if findings.leaks:
        known = os.path.basename(str(audited.flags.get("known", "")))
        advice = _advice(audited, {**audited.flags, "known": known})
    return page.render(findings, advice, about)
