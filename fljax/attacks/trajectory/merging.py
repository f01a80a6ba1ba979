"""Few simulated steps in place of a client's many.

Along a direction of curvature `lambda` a client's K steps of rate eta shrink a distance by
`(1 - z / K)^K`, with `z = eta K lambda`. M equal steps over the same `eta K` shrink it by
`(1 - z / M)^M`, which is far from that unless M is nearly K. M steps of unlike sizes can
be any polynomial of degree M that is `1 - z` near zero, as in the methods of Richardson
and Chebyshev for linear systems. Here it is the one nearest to the client's, by least
squares over all z up to `2.8 M`, where as many equal steps would have run away, or to
`2 K`, where the client itself would. Its real roots are steps; a pair of complex ones is
two steps, of which the second begins where the first began. More than 60 steps are those
of two halves of the client's, one after the other.

| K                            | 12    | 19    | 24    | 57    | 700   |
|------------------------------|-------|-------|-------|-------|-------|
| most that M = 10 is off by   | 0.001 | 0.008 | 0.009 | 0.010 | 0.011 |
| ... of it where z < 4        | 0.001 | 0.005 | 0.006 | 0.007 | 0.007 |
| 16 equal steps where z < 4   | 0     | 0.003 | 0.006 | 0.013 | 0.017 |

(A client of 16 steps or fewer takes them as they are, if there are 16.)

Where the curvature changes along a path this is no longer exact, and a step is as much
off as one of its size is.
"""

import functools

import numpy as np
from numpy.polynomial import chebyshev

_REACH = 2.8  # largest z over M
_NODES = 100  # of the least squares, for each step
_SMALL = 0.3  # z below which an error counts as there
_MOST = 60  # steps of one polynomial; time and memory grow with the cube and the square


@functools.lru_cache(maxsize=1024)
def table(steps: int, merged: int) -> np.ndarray:
    """The simulated steps of a client.

    Args:
      steps: K, those of the client.
      merged: M, those of the simulation.

    Returns:
      `[M, 3]` float32, of each: weight of the slope where the pair began, weight of the
      slope here, and 1 if the next step begins where this one did. Not to be written to.
    """
    if steps > merged > _MOST:
        found = _in_halves(steps, merged)
    else:
        found = np.asarray(_rows(steps, merged), np.float32)
    found.flags.writeable = False  # all callers have the same one
    return found


def _in_halves(steps: int, merged: int) -> np.ndarray:
    """Those of the first half of the client's steps, then those of the second."""
    found = []
    for own, few in ((steps // 2, merged // 2), (-(-steps // 2), -(-merged // 2))):
        share = own / steps
        found.append(table(own, few) * np.array([share, share, 1], np.float32))
    return np.concatenate(found)


def _rows(steps: int, merged: int) -> list[tuple[float, float, float]]:
    if steps <= merged or merged == 1:
        own = max(min(steps, merged), 1)  # a client without rows takes none
        sizes = np.where(np.arange(merged) < steps, 1 / own, 0.0)
        pairs = [(complex(size),) for size in sizes]
    else:
        pairs = _steps(steps, merged, min(_REACH * merged, 2.0 * steps))
    rows = []
    for pair in pairs:
        if len(pair) == 1:
            rows.append((0.0, pair[0].real, 0.0))
            continue
        total, product = sum(pair).real, abs(np.prod(pair))
        half = total / 2 if total > 0 else np.sqrt(product)
        last = product / half
        rows += [(0.0, half, 1.0), (total - last, last, 0.0)]
    return rows


def _steps(steps: int, merged: int, reach: float) -> list[tuple[complex, ...]]:
    """Sizes of steps, those of a complex pair together, in a sound order."""
    polynomial = _nearest(steps, merged, reach)
    roots = chebyshev.chebroots(polynomial).astype(complex)
    sizes = 2 / (reach * (1 + roots))
    pairs = [(size,) for size in sizes if abs(size.imag) < 1e-9]
    pairs += [(size, size.conjugate()) for size in sizes if size.imag >= 1e-9]
    return _ordered(pairs, reach)


def _nearest(steps: int, merged: int, reach: float) -> np.ndarray:
    """Chebyshev coefficients over `[0, reach]` of a polynomial `1 - z + ...` of degree M."""
    half, count = reach / 2, _NODES * merged
    x = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    z = half * (1 + x)
    base = 1 - z / steps
    wanted = np.sign(base) ** steps * np.abs(base) ** steps
    weight = 1 / np.sqrt(np.maximum(z, _SMALL))
    powers = chebyshev.chebvander(x, merged - 2) * (z * z)[:, None]
    rest = (wanted - 1 + z) * weight
    found = np.linalg.lstsq(powers * weight[:, None], rest, rcond=None)[0]
    line = np.array([half, half])
    bent = chebyshev.chebmul(chebyshev.chebmul(line, line), found)
    return chebyshev.chebadd(chebyshev.chebadd([1.0], -line), bent)


def _ordered(
    pairs: list[tuple[complex, ...]], reach: float
) -> list[tuple[complex, ...]]:
    """The order in which no distance grows by much on the way."""
    z = np.linspace(0, reach, 400)
    left, found, product = list(pairs), [], np.ones_like(z)
    while left:
        after = [
            product * np.prod([1 - s * z for s in pair], axis=0).real for pair in left
        ]
        best = int(np.argmin([np.abs(one).max() for one in after]))
        product = after[best]
        found.append(left.pop(best))
    return found
