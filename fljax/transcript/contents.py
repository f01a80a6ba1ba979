"""What the arrays of a transcript may be called, and hold."""

from collections.abc import Collection, Mapping

import numpy as np

from fljax import printable

SUMS = ("member", "share")  # only where the messages are sums
IDS = ("round", "client", "member")
_ROUNDING = 0.01  # of shares that add up, written with two digits perhaps
_LONGEST, _DEEPEST = 1000, 50  # letters and folders of an array's name


def with_ids(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same with signed numbers of rounds and clients, as those that they meet.

    NumPy compares unsigned ones with signed ones as floats, in which ids of more than 53
    bits are one.
    """
    return {
        name: array.astype(np.int64)
        if name in IDS and array.dtype.kind == "u"
        else array
        for name, array in arrays.items()
    }


def check_name(name: str) -> None:
    """Raises ValueError unless an array of an archive may be called so."""
    if not printable.is_plain(name):
        raise ValueError(f"an array has control characters in its name: {name!r}")
    if len(name) > _LONGEST or name.count("/") > _DEEPEST:
        raise ValueError(f"an array has an overlong name: {name[:40]!r}...")


def check_names(names: Collection[str]) -> None:
    """Raises ValueError unless arrays of an archive may have these names."""
    for name in names:
        check_name(name)
    folders = {n[:at] for n in names for at, letter in enumerate(n) if letter == "/"}
    if folders & set(names):
        raise ValueError(f"both array and folder: {sorted(folders & set(names))}")


def check(arrays) -> None:
    """Raises ValueError unless the arrays are those of one transcript."""
    check_names(arrays)
    for name, array in arrays.items():
        if array.dtype.itemsize > 8:
            raise ValueError(f"{name!r} has the unsupported type {array.dtype.str}")
    leaves = [n.removeprefix("params/") for n in arrays if n.startswith("params/")]
    both = {f"{kind}/{leaf}" for kind in ("params", "delta") for leaf in leaves}
    sums = set(SUMS) & set(arrays)
    if not leaves or set(arrays) != {"round", "client"} | sums | both:
        raise ValueError("expected 'round', 'client', and each parameter with a delta")
    rounds, clients = arrays["round"], arrays["client"]
    if rounds.ndim != 1 or rounds.dtype.kind not in "iu" or not rounds.size:
        raise ValueError("'round' is not a list of one or more integers")
    if rounds[0] < 0 or rounds[-1] >= 2**63 or (rounds[1:] <= rounds[:-1]).any():
        raise ValueError("'round' is negative, or over 2^63, or does not increase")
    if clients.ndim != 2 or len(clients) != len(rounds):
        raise ValueError("'client' is not a table with one line per round")
    if clients.dtype.kind not in "iu" or ((clients < -1) | (clients >= 2**63)).any():
        raise ValueError("'client' has entries that are neither an id < 2^63 nor -1")
    _check_once(rounds, clients)
    if sums:
        _check_sums(arrays)
    for leaf in leaves:
        sent, delta = arrays[f"params/{leaf}"], arrays[f"delta/{leaf}"]
        if {sent.dtype.kind, delta.dtype.kind} != {"f"}:
            raise ValueError(f"parameter {leaf!r} is not of floating point")
        if sent.shape[:1] != rounds.shape:
            raise ValueError(f"parameter {leaf!r} is not one per round")
        if delta.shape != clients.shape + sent.shape[1:]:
            raise ValueError(f"delta of {leaf!r} does not fit the parameter")


def _check_sums(arrays) -> None:
    """Who is in each sum."""
    if not set(SUMS) <= set(arrays):
        raise ValueError("expected both 'member' and 'share', or none")
    members, shares = arrays["member"], arrays["share"]
    if members.ndim != 3 or members.shape[:2] != arrays["client"].shape:
        raise ValueError("'member' has not a line for each sum")
    if members.dtype.kind not in "iu" or ((members < -1) | (members >= 2**63)).any():
        raise ValueError("'member' has entries that are neither an id < 2^63 nor -1")
    if shares.shape != members.shape or shares.dtype.kind != "f":
        raise ValueError("'share' is not one number for each member")
    there = members >= 0
    known = np.isnan(shares) | ((shares >= 0) & (shares <= 1))
    if not known.all() or (shares[~there] != 0).any():
        raise ValueError("'share' has entries that are no share of a sum")
    if ((arrays["client"] >= 0) != there.any(axis=2)).any():
        raise ValueError("'member' has nobody in a sum, or somebody in none")
    ordered = np.sort(members, axis=2)
    if ((ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] >= 0)).any():
        raise ValueError("'member' has a client twice in a sum")
    whole = shares.sum(axis=2, where=there, dtype=np.float64)[there.any(axis=2)]
    if (np.abs(whole - 1) > _ROUNDING).any():  # never of NaN
        raise ValueError("'share' does not add up to 1 in every sum")


def _check_once(rounds, clients) -> None:
    """Two messages of one client in a round cannot be told apart."""
    ordered = np.sort(clients, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, at = np.argwhere(twice)[0]
        raise ValueError(
            f"'client' has client {ordered[row, at]} twice in round {rounds[row]}"
        )
