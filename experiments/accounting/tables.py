"""Statements about privacy on a screen: tables of epsilons, and what they rest on."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from experiments.accounting import table6
from fljax.driver.screen_tables import empty
from fljax.privacy import Statement, Training

_WAYS = {
    "printed": "as printed",
    "implemented": "as implemented",
    "recommended": "recommended",
}
_SEEN = {
    "messages": "messages",
    "examples": "an example",
    "sum": "sums, and whose",
    "models": "models alone",
    "": "not said",
}
_SHOWN_FIRST = ("implemented", "recommended", "printed")
_CONVENTION = (
    "Convention: the paper's numbers are those of one step more than there are, n = T L + 1 "
    "(T + 1 rounds for Fed-SDP). Difference: ours rounded to four digits minus printed, in "
    "units of the last digit."
)


class Kept(NamedTuple):
    """What keeps a target, by one statement; None where nothing or anything does.

    Attributes:
      statement: as it is now.
      sigma: the smallest that does.
      rounds: the most that do.
    """

    statement: Statement
    sigma: float | None
    rounds: int | None


def show_table6(
    out: Console,
    entries: Sequence[table6.Printed],
    modes: Sequence[table6.Mode],
    notes: bool,
) -> None:
    """Prints what else can be said, then Table VI and how much of it is reproduced."""
    out.print(_modes(modes))
    if notes:
        _assumptions(out, [mode.first for mode in modes], "of MNIST")
        first = next(iter(table6.TRAININGS.values()))
        _refused(out, table6.refused(first))
        out.print(f"{_CONVENTION}\n")
    out.print(_entries(entries))
    for which, name in ((1, "n = T L"), (0, "n = T L + 1")):
        off = [abs(entry.last_digits[which]) for entry in entries]
        within = sum(each <= 1 for each in off)
        out.print(
            f"{name}: {within} of {len(off)} within 1 of the last digit, "
            f"the furthest {max(off)}"
        )


def show_training(
    out: Console,
    method: str,
    training: Training,
    found: Sequence[Statement],
    notes: bool,
) -> None:
    """Prints the statements about one training, with their assumptions if so told.

    What is implemented comes first, the recipe of a paper last; what would be recommended
    is left out where it is what is implemented.
    """
    out.print(
        f"{method}: N_i = {training.records}, B = {training.batch_size}, L = {training.local_steps}, "
        f"T = {training.rounds}, K_t / K = {training.clients_per_round} / {training.clients}, "
        f"sigma = {training.sigma:g}, C = {training.clip:g}, M = {training.layers}, "
        f"delta = {training.delta:g}",
        highlight=False,
    )
    table = empty()
    for name in ("", "way", "level", "against who sees", "what"):
        table.add_column(name, justify="left" if name else "right")
    table.add_column("epsilon", justify="right", no_wrap=True)
    numbers = [said for said in found if said.epsilon is not None]
    shown = distinct(sorted(numbers, key=lambda said: _SHOWN_FIRST.index(said.way)))
    for number, said in enumerate(shown, 1):
        what = _level(said.unit), _SEEN[said.seen], said.name
        table.add_row(str(number), _WAYS[said.way], *what, _number(said.epsilon))
    out.print(table)
    if notes:
        _assumptions(out, shown)
        _refused(out, [said for said in found if said.epsilon is None])


def distinct(found: Sequence[Statement]) -> list[Statement]:
    """Without those that say under another name what one before them says."""
    first: dict[Statement, Statement] = {}
    for said in found:
        first.setdefault(said._replace(way="implemented", name=""), said)
    return list(first.values())


def show_kept(
    out: Console, target: float, training: Training, kept: Sequence[Kept]
) -> None:
    """Prints what keeps a target."""
    table = empty(f"What keeps epsilon = {target:g} at delta = {training.delta:g}")
    table.add_column("way")
    table.add_column("what")
    table.add_column(f"smallest sigma\nat T = {training.rounds}", justify="right")
    table.add_column(f"most rounds\nat sigma = {training.sigma:g}", justify="right")
    for each in kept:
        sigma = "none" if each.sigma is None else f"{each.sigma:.4f}"
        rounds = "over a million" if each.rounds is None else str(each.rounds)
        said = each.statement
        table.add_row(
            _WAYS[said.way], f"{_level(said.unit)}: {said.name}", sigma, rounds
        )
    out.print(table)


def _entries(entries: Sequence[table6.Printed]) -> Table:
    table = empty("Table VI of Wei et al. (2021): epsilon as printed, and its recipe")
    for name in ("data", "method", "L", "level"):
        table.add_column(name)
    for name in ("printed", "n = T L + 1", "difference", "n = T L", "difference"):
        table.add_column(name, justify="right")
    for entry in entries:
        local, unit = (part.split("=")[1] for part in entry.setting.split(";"))
        shifted, exact = entry.last_digits
        table.add_row(
            entry.data, entry.method, local, unit, f"{entry.published:.4f}",
            f"{entry.shifted:.6f}", f"{shifted:+d}", f"{entry.exact:.6f}", f"{exact:+d}",
        )  # fmt: skip
    return table


def _modes(modes: Sequence[table6.Mode]) -> Table:
    table = empty("The same trainings, tightly: epsilon by what is implemented")
    table.add_column("", justify="right")
    for name in ("method", "L", "level", "against who sees", "what"):
        table.add_column(name)
    for name in table6.TRAININGS:
        table.add_column(name, justify="right", no_wrap=True)
    for number, mode in enumerate(modes, 1):
        table.add_row(
            str(number), mode.method, str(mode.local_steps), _level(mode.first.unit),
            _SEEN[mode.first.seen], mode.name,
            *(_number(said.epsilon) for said in mode.statements.values()),
        )  # fmt: skip
    return table


def _assumptions(out: Console, found: Sequence[Statement], whose: str = "") -> None:
    out.print("What each rests on" + (f" (numbers {whose})" if whose else ""))
    for number, said in enumerate(found, 1):
        out.print(f"{number:3}  {said.assumption}", highlight=False)


def _refused(out: Console, found: Sequence[Statement]) -> None:
    if found:
        out.print("\nNo number is given for")
    for said in found:
        out.print(f"  - {said.name}: {said.reason}", highlight=False)


def _level(unit: str) -> str:
    return {"record": "instance"}.get(unit, unit)


def _number(epsilon: float | None) -> str:
    if epsilon is None:
        return "-"
    return "infinite" if math.isinf(epsilon) else f"{epsilon:.4g}"
