"""Whether a training that a recorder goes on with is the one that it recorded before.

Flower and NVFlare number the rounds of every job from the first on, so that a number does
not tell a job that was resumed from one that began anew, whose rounds are another
training's. The model that is sent first does.
"""

import pathlib
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from fljax.transcript import arrays, pieces
from fljax.transcript.views import TranscriptError

_FAR = 10  # times the largest step between two rounds before


def check(paths: Sequence[pathlib.Path], sent: Mapping[str, np.ndarray]) -> None:
    """Looks at the first model that is sent after those of the recorded rounds.

    The last round's own model may come again: the training has stopped before it was
    aggregated. A model that is far from it is warned of.

    Args:
      paths: of the rounds, at least one, in their order.
      sent: the model, in the shapes of theirs.

    Raises:
      TranscriptError: it is the model of an earlier round.
    """
    anew = (
        f"go on from the model after round {int(paths[-1].stem)}, or remove "
        f"{paths[-1].parent} to begin anew"
    )
    last = pieces.sent(paths[-1])
    if _equal(last, sent):
        return
    before, largest = None, 0.0
    for path in paths:
        model = last if path == paths[-1] else pieces.sent(path)
        pieces.compare(arrays.shapes(model), arrays.shapes(sent), str(path))
        if _equal(model, sent):
            raise TranscriptError(
                f"the model that is sent is that of round {int(path.stem)} again, another "
                f"training's or an earlier checkpoint's: {anew}"
            )
        if before is not None:
            largest = max(largest, _apart(before, model))
        before = model
    if largest and _apart(last, sent) > _FAR * largest:
        warnings.warn(
            "the model that is sent is further from the last one than any before by far, "
            f"as another training's is: {anew}",
            stacklevel=4,
        )


def _equal(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(other[name], array) for name, array in one.items()
    )


def _apart(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> float:
    parts = [
        np.linalg.norm(np.subtract(other[name], array, dtype=np.float64).ravel())
        for name, array in one.items()
    ]
    return float(np.linalg.norm(parts))
