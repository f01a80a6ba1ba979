"""What a run says at its end: fit, what leaks and to whom, and what to do about it."""

import math
import pathlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from experiments.aia.setup import Setup
from experiments.report import cards, in_short
from experiments.report.figures import selection
from fljax.driver import config
from fljax.results import Row

_NOT_TOLD = {
    "run_dir", "dry_run", "paper_table", "defense", "sweep", "transcript",
    "save_guesses", "save_transcript",
}  # fmt: skip
_EPSILON = 4
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
) -> Iterator[Text]:
    """For the screen: the command as it can be run here."""
    told = {"flags": flags}
    if "what_to_do" in manifest:
        told["what_to_do"] = _command(flags, usual, rows)
    for (_, point), percent in selection.explained(rows).items():
        where = f" ({point})" if point else ""
        shown = ", ".join(
            f"{percent[metric]:.1f} % on the {metric.partition('_')[0]} rows"
            for metric in selection.EXPLAINED
            if metric in percent
        )
        yield Text(f"variation explained by the last model sent{where}: {shown}")
    card = cards.card("run", rows, {**manifest, **told}, None)
    for _, text in in_short.sentences([card]):
        yield Text(text.replace(" What to do:", "\nWhat to do:"))


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
    told.append(f"--defense=dp_sgd(clip={clip}, epsilon={_EPSILON})")
    return f"python -m experiments.aia {shlex.join(told)}"


def _without_folders(flags: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest need not tell twice how a disk is organised."""
    paths = {name: flags.get(name) for name in ("data_path", "data_dir")}
    return {**flags} | {
        name: pathlib.PurePath(path).name for name, path in paths.items() if path
    }
