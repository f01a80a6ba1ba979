"""Whether messages and rows fit each other, and whether anything was learnt.

Two things are said in place of a verdict, by the misfit of the messages with the true rows
(`fits`), which is about 1 where all is right:

* *messages do not fit these rows*: it is above 3 for half of the clients, or above 10 for
  one. A leak stays one all the same, unless attacks that simulate the training were run and
  none explains the messages of half of the clients to within 10, or to within 3 and better
  than with strangers' rows. If it is above 3 for fewer, the line says for how many.
  Nor do they fit where they have less noise than their defense is said to add, which is
  then taken for noise that hides (`declared_noise`), or show another training than the
  declared one, which passes for noise, too (`undeclared`);
* *no conclusion: the model has hardly learnt*: nothing is shown, and the last model
  explains hardly anything of some client's rows (`fljax.fit`).

Where the true rows could not be compared, the misfits of attacks count. Where there are
none of these either, the rows may be others, too.

Of an attack whose misfit is far above that of the true rows the search stopped short:
what it does not show may be there. Rounds whose simulation runs away are followed to
first order only, which is said. Where an attack that simulates the training could not be
run, or was not asked for, what is not shown comes with *strongest attack not run*.

Where an attack that is right throughout would not be shown, either, rows are too few, or
what is told without messages is nearly everything: nothing can be concluded.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fljax import fit, verdicts
from fljax.attacks.estimates import Prediction
from fljax.attacks.trajectory import FITS, MISFITS
from fljax.auditing.fits import Fit
from fljax.auditing.lines import MISFIT, NOT_JUDGED, Line
from fljax.types import Array
from fljax.verdicts import ACCURACY, ERROR

STRONGEST = "strongest attack not run"
SHORT = "the search stopped short"
_FIRST_ORDER = "linear_inversion"
SIMULATING = ("trajectory", _FIRST_ORDER)
_CHECK = (
    "check client_column; learning_rate (a list where it changes), batch_size, drop_last, "
    "local_epochs, optimiser, momentum, weight_decay, optimiser_state and dropout; loss (a "
    "factor of 1/2 halves the rate) and the model; layers that clients keep to themselves (FedBN); "
    "input_order, standardise and standardise_target; the order of classes (texts: sorted); "
    "defense; rows of a client that the file lacks; augmentation, which is not "
    "simulated"
)
_NO_BETTER = 0.75  # of the misfit on strangers
_COLUMN = (ACCURACY.metric, ERROR.metric)
QUIET = (verdicts.NOT_SHOWN, verdicts.PREDICTABLE)


def doubted(
    found: Sequence[Line],
    strangers: Mapping[str, Prediction],
    rows: Fit | None = None,
) -> list[Line]:
    """Other words where messages and rows do not fit, or little was learnt.

    Args:
      found: all lines.
      strangers: what attacks said of strangers, by their names.
      rows: how the true rows fit; None where nobody looked.
    """
    rows = Fit(np.array([np.nan])) if rows is None else rows
    names = {line.attack for line in found}
    least = _Least(
        _least(line.diagnostics for line in found),
        _least(e.diagnostics for name, e in strangers.items() if name in names),
    )
    lines = [_short(_rough(_doubted(line, rows, least)), rows) for line in found]
    run = {line.attack for line in found if line.total is not None}
    return lines if run & set(SIMULATING) else [_weak(line) for line in lines]


class _Least(NamedTuple):
    """The least misfit `[C]` of any attack, on the clients' rows and on strangers'."""

    own: np.ndarray | None
    strange: np.ndarray | None


def _doubted(line: Line, rows: Fit, attacks: _Least) -> Line:
    """Other words where messages and rows do not fit, or little was learnt."""
    if line.verdict == NOT_JUDGED:
        return line
    if line.metric not in _COLUMN:
        return _of_wrong_rows(line, rows)
    misfit = attacks.own if rows.misfit is None else rows.misfit
    leaks, least = line.verdict == verdicts.LEAKS, float(np.fmin.reduce(rows.explained))
    off = "" if misfit is None else bad(misfit, rows.by_chance)
    if rows.contradicted and not leaks:
        return line._replace(verdict=MISFIT).and_that(rows.contradicted, rows.slip)
    if misfit is not None and (
        _unexplained(attacks, misfit) if leaks else _of_others(misfit)
    ):
        return line._replace(verdict=MISFIT).and_that(
            off, rows.paced, rows.slip or _CHECK
        )
    if leaks or fit.has_learnt(least):
        return line.and_that(off, rows.paced)
    check = "" if misfit is not None else _CHECK
    return line._replace(verdict=fit.UNLEARNT).and_that(off, fit.said(least), check)


def _of_wrong_rows(line: Line, rows: Fit) -> Line:
    """Other words for shares of labels and whole rows, for which no model has to have learnt."""
    if line.verdict not in QUIET:
        return line
    if rows.contradicted:
        return line._replace(verdict=MISFIT).and_that(rows.contradicted, rows.slip)
    if rows.misfit is not None and _of_others(rows.misfit):
        off = bad(rows.misfit, rows.by_chance)
        return line._replace(verdict=MISFIT).and_that(
            off, rows.paced, rows.slip or _CHECK
        )
    return line


def bad(misfit: np.ndarray, by_chance: np.ndarray | float = 0.0) -> str:
    """Of how many clients messages and rows do not fit; empty where all do.

    Args:
      misfit: `[C]`.
      by_chance: `[C]` up to which noise alone may leave it (`fits.Fit`).
    """
    off = misfit > FITS
    if not off.any():
        return ""
    high, chance = misfit[off], (misfit <= by_chance)[off].all()
    who = f"{high.size} of {misfit.size} clients" if misfit.size > 1 else "the client"
    few = ", as noise may leave of so few messages" if chance else ""
    return (
        f"messages of {who} do not fit their rows (misfit up to {high.max():.4g}{few})"
    )


def _least(every: Iterable[Mapping[str, Array]]) -> np.ndarray | None:
    """The least misfit of any attack; infinite for NaN, None if none has any."""
    known = [np.asarray(each["misfit"]) for each in every if "misfit" in each]
    if not known:
        return None
    return np.nan_to_num(np.fmin.reduce(known), nan=np.inf, posinf=np.inf)


def _of_others(misfit: np.ndarray) -> bool:
    """Whether messages are not of these rows, so that what is not shown may be there."""
    return float(np.median(misfit)) > FITS or float(np.max(misfit)) > MISFITS


def _unexplained(attacks: _Least, misfit: np.ndarray) -> bool:
    """Whether not even an attack that leaks explains what it simulates."""
    if attacks.own is None:
        return False
    left = float(np.median(np.fmin(misfit, attacks.own)))
    if attacks.strange is None:
        return left > MISFITS
    alike = left > _NO_BETTER * float(np.median(attacks.strange))
    return left > MISFITS or (left > FITS and alike)


def _short(line: Line, rows: Fit) -> Line:
    """That a search left far more than the true rows do."""
    own = line.diagnostics.get("misfit")
    if own is None or rows.misfit is None or line.verdict not in QUIET:
        return line
    if line.attack == _FIRST_ORDER:  # which explains less however well it searches
        return line
    own = np.nan_to_num(np.asarray(own), nan=np.inf, posinf=np.inf)
    times = own / np.maximum(rows.misfit, 1.0)
    worst = int(np.argmax(np.nan_to_num(times)))
    if not times[worst] > FITS:
        return line
    left, least = own[worst], rows.misfit[worst]
    said = f"{SHORT} (misfit {left:.4g}, of the true rows {least:.2g})"
    return line.and_that(said, doubt=SHORT)


def _rough(line: Line) -> Line:
    """That some rounds were not simulated."""
    left = 100 * (1 - np.min(line.diagnostics.get("simulated", 1)))
    if left <= 0:
        return line
    return line.and_that(f"first order only in {left:.3g} % of the rounds")


def _weak(line: Line) -> Line:
    """What is not shown, though the strongest attack was not tried."""
    quiet = line.verdict in QUIET and line.metric in _COLUMN
    return line.and_that(STRONGEST, doubt=STRONGEST) if quiet else line
