"""What a run says at its end: fit, what leaks and to whom, and what to do about it."""

import math
import pathlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from experiments.aia import client_table, true_rows
from experiments.aia.setup import Setup
from experiments.report import cards, cases, in_short, lines
from experiments.report.figures import selection
from experiments.report.gains import Score
from fljax import fit, verdicts
from fljax.auditing import advice, words
from fljax.driver import config
from fljax.driver.console import command
from fljax.results import Row

_NOT_TOLD = {
    "run_dir", "dry_run", "paper_table", "defense", "sweep", "transcript",
    "save_guesses", "save_transcript",
}  # fmt: skip
_WITHOUT = {
    verdicts.STRANGERS: "the same attack on other people is right for",
    verdicts.IMPUTATION: "imputation from the other columns for",
    verdicts.MAJORITY: "always naming the most frequent value for",
}
_ERRORS_WITHOUT = {
    verdicts.STRANGERS: "the same attack on other people errs by",
    verdicts.IMPUTATION: "imputation from the other columns by",
    verdicts.MAJORITY: "always naming the median by",
}
_WORDS = "words of the tables: docs/start.md, Words of the table"
_LONG = 40  # lines of tables, which a screen hardly has
_CLIPS = (0.1, 1.0, 10.0, 100.0)  # in units of the targets; held-out rows choose


def manifest(
    points: Sequence[Setup],
    rows: Sequence[Row],
    flags: Mapping[str, Any],
    usual: Mapping[str, Any],
) -> dict[str, Any]:
    """What was not run, names of the clients, and the command for a leak.

    Args:
      points: of the run.
      rows: of all of them.
      flags: of the run.
      usual: those that need not be said.
    """
    left_out = {at.label or "run": dict(at.not_run) for at in points if at.not_run}
    said: dict[str, Any] = {"not_run": left_out}
    counts = {at.clients.sizes.shape[1] for at in points}
    if len(counts) == 1:
        (said["num_clients"],) = counts
    names = {each for at in points for each in at.clients.names}
    if len(names) == 1:
        said["clients"] = list(*names)
    if any(at.config.attack.kinds for at in points):
        said["what_to_do"] = _command(_without_folders(flags), usual, rows)
    return said


def said(
    rows: Sequence[Row],
    manifest: Mapping[str, Any],
    flags: Mapping[str, Any],
    usual: Mapping[str, Any],
    sensitive: str | None,
) -> tuple[list[Text | Table], list[Text]]:
    """For the screen, above and below the tables: what leaks; the fit, what to do."""
    told = {"flags": flags}
    if "what_to_do" in manifest:
        told["what_to_do"] = _command(flags, usual, rows)
    card = cards.card("run", rows, {**manifest, **told}, None)
    top = _top(card)
    above = list(who_sees(top, sensitive))
    below = [*map(Text, [_WORDS, *_fit(rows), *true_rows.said(rows)])]
    for each in in_short.sentences([card]):
        above.append(each.text)
        if each.command:
            below += [Text(f"What to do: {in_short.TO_DO}:"), command(each.command)]
    by_client = client_table.of(card, top) if top else None
    shown = [*map(Text, above), *([by_client] if by_client else [])]
    return shown, below


def in_order(
    above: Sequence[Text | Table],
    tables: Sequence[Table],
    below: Sequence[Text | Table],
) -> list[Text | Table]:
    """Above the tables what leaks; below them where several would scroll it away."""
    if sum(table.row_count for table in tables) > _LONG:
        return [*tables, *above, *below]
    return [*above, *tables, *below]


def _top(card: cards.Card) -> Score | None:
    """The strongest leak without a defense, or none."""
    bare = [case for case in cases.of_run(card) if not case.defended]
    leaks = [
        score
        for case in bare[:1]
        for score in case.scores
        if score.verdict.kind == verdicts.LEAKS
    ]
    return max(leaks, key=lambda score: score.verdict.beyond.mean, default=None)


def who_sees(top: Score | None, sensitive: str | None) -> Iterator[str]:
    """The strongest leak in plain words."""
    if top is None:
        return
    who, whose = words.who(top.row.setting), words.whose(top.row.setting)
    if top.gain.measure is verdicts.ERROR:
        said, form = _ERRORS_WITHOUT, "{} {:.4g}"
        claim = (
            f"{who} knows {sensitive} of {whose} rows to within "
            f"{lines.interval(top.shown)} on average"
        )
    else:
        said, form = _WITHOUT, "{} {:.1f} %"
        mean, low, high = top.shown[:3]
        ends = f" [{low:.1f}, {high:.1f}]" if math.isfinite(high - low) else ""
        claim = f"{who} names {sensitive} of {mean:.1f} %{ends} of {whose} rows"
    others = [
        form.format(said[name], value)
        for name, value in reversed(top.beside.items())
        if name in said
    ]
    hidden = words.alone(top.verdict.gains)
    yield f"{claim} ({top.row.attack}). Without them: {'; '.join(others)}. {hidden}".strip()


def _fit(rows: Sequence[Row]) -> Iterator[str]:
    def shown(percent: Mapping[str, float], metrics: Sequence[str]) -> str:
        return ", ".join(
            f"{percent[metric]:.1f} % on the {metric.partition('_')[0]} rows"
            for metric in metrics
            if metric in percent
        )

    for (_, point), percent in selection.explained(rows).items():
        where = f" ({point})" if point else ""
        right = shown(percent, selection.RIGHT)
        worse = fit.diverged(percent.get(f"train_{fit.METRIC}", 0))
        more = f"; classes named rightly: {right}" if right else ""
        more += f"; {worse}" if worse else ""
        explained = shown(percent, selection.EXPLAINED)
        yield f"variation explained by the last model sent{where}: {explained}{more}"


def _command(
    flags: Mapping[str, Any], usual: Mapping[str, Any], rows: Sequence[Row]
) -> str:
    """The same run with DP-SGD.

    Gradients grow with the errors of a model, so that clips are tried around the first
    model's.

    Args:
      flags: of the run.
      usual: those that need not be said.
      rows: of the run, with the losses of its models.
    """
    told = [
        f"--{name}={config.to_text(value)}"
        for name, value in flags.items()
        if name not in _NOT_TOLD and value != usual[name]
    ]
    loss = [row for row in rows if row.metric == "train_loss"]
    first = min(loss, key=lambda row: selection.round_number(row) or 0).value
    unit = 10.0 ** round(math.log10(max(first, 1e-12)) / 2)
    clips = [f"{clip * unit:g}" for clip in _CLIPS]
    held_out = any(row.metric == "test_loss" for row in rows)
    clip = "|".join(clips) if held_out else clips[1]
    told.append(f"--defense=dp_sgd(clip={clip}, epsilon={advice.EPSILON})")
    return f"python -m experiments.aia {shlex.join(told)}"


def _without_folders(flags: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest need not tell twice how a disk is organised, but for a relative path."""
    paths = {name: flags.get(name) for name in ("data_path", "data_dir")}
    return {**flags} | {
        name: pathlib.PurePath(path).name
        for name, path in paths.items()
        if path and pathlib.PurePath(path).is_absolute()
    }
