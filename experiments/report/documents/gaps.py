"""How much more one curve of a picture names than another, seed by seed.

What Figures 1, 3, 5 and 6 of Diana et al. (2025) are about: their attacks on the model
beside those on gradients.
"""

from experiments.report.documents import pictures, writing
from experiments.report.documents.curve_picture import Curve
from fljax import metrics
from fljax.driver.config import ConfigError

_PAIRS = (
    ("last message, model-based", "gradients, best cosine"),
    ("last global model", "gradients, best cosine"),
    ("active, half as many rounds", "gradients, best cosine"),
    ("active, half as many rounds", "active, half, gradients"),
    ("active server, model-based", "active server, gradients"),
)


def text(name: str) -> str:
    """A line for each place of a picture that both curves of a pair have.

    Args:
      name: of the picture.

    Raises:
      ConfigError: it has no such pair, or a pair nothing in common.
    """
    picture = pictures.PICTURES[name]
    body = []
    for one, other in _PAIRS:
        if one not in picture.lines or other not in picture.lines:
            continue
        more, less = (_by_place(picture.lines[each]) for each in (one, other))
        for x in sorted(more.keys() & less.keys()):
            seeds = sorted(more[x].keys() & less[x].keys())
            gap = metrics.interval([more[x][s] - less[x][s] for s in seeds])
            body.append([f"{x:g}", one, other, writing.plain(gap), str(len(seeds))])
    if not body:
        raise ConfigError(f"gaps.{name}: expected one of {', '.join(_named())}")
    header = [picture.across, "attack", "beside", "points more, mean [95 %]", "seeds"]
    return writing.table(header, body, header[3:])


def _by_place(curve) -> dict[float, dict[int, float]]:
    """x -> seed -> value."""
    assert isinstance(curve, Curve)
    found: dict[float, dict[int, float]] = {}
    for result in curve.rows():
        for x, row in result:
            assert x is not None
            found.setdefault(x, {})[row.seed] = row.value
    return found


def _named() -> list[str]:
    """Pictures that have a pair."""
    return [
        name
        for name, picture in pictures.PICTURES.items()
        if any(set(pair) <= picture.lines.keys() for pair in _PAIRS)
    ]
