"""Whether messages and rows fit each other, and whether anything was learnt.

Two things are said in place of a verdict:

* *messages do not fit these rows*: what an attack explains of the messages is worse
  than it should be. Its misfit, about 1 where all is right, is above 10; or above 3 and
  no better than on strangers; or above 3, and the last model explains hardly anything
  of some client's rows (`fljax.fit`). The misfit is the attack's own, else the least of
  any. The first two hold for leaks, too, if they are so for half of the clients;
* *no conclusion: the model has hardly learnt*: nothing is shown, and it explains hardly
  anything. Where no misfit is known, the rows may be others, too.

Rounds whose simulation runs away are followed to first order only, which is said.

Where an attack that simulates the training could not be run, or was not asked for, what
is not shown comes with *strongest attack not run*.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from fljax import fit, verdicts
from fljax.attacks.estimates import Prediction
from fljax.attacks.trajectory import FITS, MISFITS
from fljax.auditing.lines import MISFIT, NOT_JUDGED, Line
from fljax.verdicts import ACCURACY, ERROR

STRONGEST = "strongest attack not run"
SIMULATING = ("trajectory", "linear_inversion")
_CHECK = "check input_order, standardise, standardise_target, and defense"
_NO_BETTER = 0.75  # of the misfit on strangers
_COLUMN = (ACCURACY.metric, ERROR.metric)


def doubted(
    found: Sequence[Line],
    strangers: Mapping[str, Prediction],
    explained: np.ndarray | None = None,
) -> list[Line]:
    """Other words where messages and rows do not fit, or little was learnt.

    Args:
      found: all lines.
      strangers: what attacks said of strangers, by their names.
      explained: `[C]` percent of the variation of each client's targets that the last
        model explains; None where nobody looked.
    """
    least = np.nan if explained is None else float(np.fmin.reduce(explained))
    lines = [_rough(_doubted(line, found, strangers, least)) for line in found]
    run = {line.attack for line in found if line.total is not None}
    return lines if run & set(SIMULATING) else [_weak(line) for line in lines]


def _doubted(
    line: Line,
    found: Sequence[Line],
    strangers: Mapping[str, Prediction],
    explained: float,
) -> Line:
    """Other words where messages and rows do not fit, or little was learnt."""
    if line.metric not in _COLUMN or line.verdict == NOT_JUDGED:
        return line
    leaks = line.verdict == verdicts.LEAKS
    own = [line] if "misfit" in line.diagnostics else found
    known = _of_clients("misfit", own, leaks)
    misfit = min(known, default=FITS)
    strange = min(_misfit_of_strangers(own, strangers, leaks), default=np.inf)
    why = f"misfit {misfit:.4g}"
    if misfit > MISFITS:
        pass
    elif misfit > FITS and misfit > _NO_BETTER * strange:
        why += f", {strange:.4g} on strangers"
    elif leaks or fit.has_learnt(explained):
        return line
    elif misfit > FITS:
        why = f"the model explains {explained:.3g} % of their targets"
    else:
        check = "" if known else _CHECK
        return line._replace(verdict=fit.UNLEARNT).and_that(fit.said(explained), check)
    return line._replace(verdict=MISFIT).and_that(why, _CHECK)


def _of_clients(metric: str, found: Sequence[Line], middle: bool) -> list[float]:
    """The worst client's, or the median, for each attack that has it."""
    values = [line.diagnostics[metric] for line in found if metric in line.diagnostics]
    return [_one(each, middle) for each in values]


def _misfit_of_strangers(
    found: Sequence[Line], strangers: Mapping[str, Prediction], middle: bool
) -> list[float]:
    estimates = (strangers.get(line.attack) for line in found)
    return [
        _one(each.diagnostics["misfit"], middle)
        for each in estimates
        if each is not None and "misfit" in each.diagnostics
    ]


def _one(values, middle: bool) -> float:
    """NaN is infinite."""
    each = np.nan_to_num(values, nan=np.inf, posinf=np.inf)
    return float(np.median(each) if middle else np.max(each))


def _rough(line: Line) -> Line:
    """That some rounds were not simulated."""
    left = 100 * (1 - np.min(line.diagnostics.get("simulated", 1)))
    if left <= 0:
        return line
    return line.and_that(f"first order only in {left:.3g} % of the rounds")


def _weak(line: Line) -> Line:
    """What is not shown, though the strongest attack was not tried."""
    quiet = line.verdict in (verdicts.NOT_SHOWN, verdicts.PREDICTABLE)
    return line.and_that(STRONGEST) if quiet and line.metric in _COLUMN else line
