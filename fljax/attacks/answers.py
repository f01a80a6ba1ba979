"""What an attack gave back, checked before anybody scores it.

A value that is no candidate scores as one that was not named: an attack with a mistake
would read as a training that leaks nothing.
"""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from fljax.attacks.adversary import AdversaryView
from fljax.attacks.estimates import Estimate, Estimates, Prediction

_PROBABILITY = "probability"  # among the details of a prediction
_ROUNDING = 1e-3  # of probabilities
_KINDS = get_args(Estimate)


class AnswerError(ValueError):
    """The answer of an attack is none, in one line that names the attack."""


def checked(name: str, view: AdversaryView, found: Any) -> Estimates:
    """What it found, if it can be scored; values that are lists as arrays.

    Args:
      name: of the attack.
      view: that it was given.
      found: what it returned.

    Raises:
      AnswerError: it is no `{name: Estimate}`, an estimate's name does not begin with
        the attack's, or a prediction is not of the clients' rows and candidates.
    """
    if not isinstance(found, dict):
        raise _wrong(name, "{name: Estimate}", type(found).__name__)
    arrays = {}
    for key, each in found.items():
        if key != name and not str(key).startswith(f"{name}_"):
            raise _wrong(name, f"estimates called {name} or {name}_...", repr(key))
        if not isinstance(each, _KINDS):
            kinds = ", ".join(kind.__name__ for kind in _KINDS)
            raise _wrong(key, f"one of {kinds}", type(each).__name__)
        if isinstance(each, Prediction):
            each = each._replace(value=_check(key, view, each))
        arrays[key] = each
    return arrays


def _check(name: str, view: AdversaryView, given: Prediction) -> np.ndarray:
    """The value of a prediction as an array."""
    mask = np.asarray(view.known.mask)
    for what in ("diagnostics", "details"):
        if not isinstance(told := getattr(given, what), Mapping):
            raise _wrong(name, f"{what}: numbers by their names", type(told).__name__)
    value = _of_shape(name, "value", given.value, mask.shape)
    for what, numbers in given.diagnostics.items():
        _of_shape(name, f"diagnostic {what}", numbers, mask.shape[:1])
    if view.continuous:
        if np.isinf(value[mask]).any():
            raise _wrong(name, "value: numbers, or NaN for none", "infinity")
        return value
    count = len(view.candidates)
    there = value[mask]
    if not np.isin(there, np.arange(-1, count)).all():
        wrong = there[~np.isin(there, np.arange(-1, count))][0]
        whole = f"numbers of candidates from 0 to {count - 1}, or -1 for none"
        raise _wrong(name, f"value: {whole}", f"{wrong:.6g}")
    if _PROBABILITY in given.details:
        shape = (*mask.shape, count)
        told = _of_shape(name, _PROBABILITY, given.details[_PROBABILITY], shape)
        told = told[mask][there >= 0]  # of rows without an answer it may be anything
        sums = told.sum(axis=-1)
        if not (np.all(told >= -_ROUNDING) and np.all(sums <= 1 + _ROUNDING)):
            raise _wrong(
                name, f"{_PROBABILITY}: of each row 0 or more, 1 in all", "others"
            )
    return value


def _of_shape(name: str, what: str, array: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        found = np.asarray(array)
    except ValueError as error:  # of unequal lengths
        kind = type(array).__name__
        raise _wrong(
            name, f"{what}: numbers {list(shape)}", f"a ragged {kind}"
        ) from error
    if found.shape != shape or found.dtype.kind not in "biuf":
        got = f"{found.dtype.name} {list(found.shape)}"
        raise _wrong(name, f"{what}: numbers {list(shape)}", got)
    return found


def _wrong(name: Any, expected: str, got: str) -> AnswerError:
    return AnswerError(f"attack {name!r}: expected {expected}, got {got}")
