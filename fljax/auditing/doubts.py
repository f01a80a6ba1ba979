"""Whether messages and rows fit each other, and whether anything was learnt.

Two things are said in place of a verdict:

* *messages do not fit these rows*: what attacks explain of the messages is worse than
  it should be. The misfit, about 1 where all is right, is above 10; or above 3 and no
  better than on strangers; or above 3, and the last model explains hardly anything of
  some client's rows (`fljax.fit`). A client's misfit is the least of any attack's: one
  that explains its messages shows that rows and messages fit. The first two hold for
  leaks, too, if they are so for half of the clients; if for fewer, the leak's line says
  for how many;
* *no conclusion: the model has hardly learnt*: nothing is shown, and it explains hardly
  anything. Where no misfit is known, the rows may be others, too.

Rounds whose simulation runs away are followed to first order only, which is said.

Where an attack that simulates the training could not be run, or was not asked for, what
is not shown comes with *strongest attack not run*.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fljax import fit, verdicts
from fljax.attacks.estimates import Prediction
from fljax.attacks.trajectory import FITS, MISFITS
from fljax.auditing.lines import MISFIT, NOT_JUDGED, Line
from fljax.types import Array
from fljax.verdicts import ACCURACY, ERROR

STRONGEST = "strongest attack not run"
SIMULATING = ("trajectory", "linear_inversion")
_CHECK = (
    "check client_column; learning_rate, batch_size, local_epochs, optimiser and momentum; "
    "the loss (a factor of 1/2 halves the rate) and the model; input_order, standardise "
    "and standardise_target; the order of classes (texts: sorted); defense"
)
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
    every = _misfits(line.diagnostics for line in found)
    misfit = FITS if every is None else _one(every, leaks)
    alike = (strangers.get(line.attack) for line in found)
    others = _misfits(each.diagnostics for each in alike if each is not None)
    strange = np.inf if others is None else _one(others, leaks)
    why = f"misfit {misfit:.4g}"
    if misfit > MISFITS:
        pass
    elif misfit > FITS and misfit > _NO_BETTER * strange:
        why += f", {strange:.4g} on strangers"
    elif leaks:
        return line.and_that(_some(every))
    elif fit.has_learnt(explained):
        some = _some(every)
        return line.and_that(some, _CHECK if some else "")
    elif misfit > FITS:
        why = f"the model explains {explained:.3g} % of their targets"
    else:
        check = "" if every is not None else _CHECK
        return line._replace(verdict=fit.UNLEARNT).and_that(fit.said(explained), check)
    return line._replace(verdict=MISFIT).and_that(why, _CHECK)


def _misfits(diagnostics: Iterable[Mapping[str, Array]]) -> np.ndarray | None:
    """The least misfit `[C]` of each client; infinite for NaN, None if nobody has any."""
    known = [np.asarray(each["misfit"]) for each in diagnostics if "misfit" in each]
    if not known:
        return None
    return np.nan_to_num(np.fmin.reduce(known), nan=np.inf, posinf=np.inf)


def _some(misfits: np.ndarray | None) -> str:
    """Of how many clients messages and rows do not fit, beside others who leak."""
    bad = np.zeros(0) if misfits is None else misfits[misfits > FITS]
    if not bad.size:
        return ""
    assert misfits is not None
    return (
        f"messages of {bad.size} of {misfits.size} clients do not fit their rows "
        f"(misfit up to {bad.max():.4g}): what is said of these is not what they leak"
    )


def _one(misfits: np.ndarray, middle: bool) -> float:
    """The worst client's, or the median."""
    return float(np.median(misfits) if middle else np.max(misfits))


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
