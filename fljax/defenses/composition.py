"""Several defenses as one."""

import functools

from fljax.types import Defense

_SEAMS = ("gradient", "encode", "receive")


def compose(*defenses: Defense) -> Defense:
    """Defenses that act at different places, together; none gives no defense.

    What each promises is listed; an accountant has to add it up.

    Raises:
      ValueError: if two of them act at the same place.
    """
    return functools.reduce(_join, defenses, Defense())


def _join(first: Defense, second: Defense) -> Defense:
    joined = {}
    for seam in _SEAMS:
        claims = [d for d in (first, second) if getattr(d, seam) is not None]
        if len(claims) == 2:
            names = " and ".join(d.name or "a nameless defense" for d in claims)
            raise ValueError(f"{seam}: expected one defense there, got {names}")
        joined[seam] = getattr(claims[0], seam) if claims else None
    name = " + ".join(d.name for d in (first, second) if d.name)
    return Defense(**joined, noise=first.noise + second.noise, name=name)
