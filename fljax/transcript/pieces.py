"""Rounds of a recorder: what they may hold, and how they are joined."""

import operator
import pathlib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from fljax.transcript import archive, contents
from fljax.transcript.views import TranscriptError


class Ledger(Protocol):
    """What the rounds are charged to, e.g. a `privacy.Ledger`."""

    def check(self, round: int, clients: Iterable[int]) -> None:
        """Refuses what cannot be charged, before it is written."""

    def charge(self, round: int, clients: Iterable[int]) -> None:
        """Notes who took part in a round."""

    def statement(self) -> dict[str, Any]:
        """What was charged, in what JSON holds."""
        ...


def check_number(round: int) -> None:
    """Raises unless this is the number of a round."""
    try:
        whole = not isinstance(round, bool) and 0 <= operator.index(round) < 2**31
    except TypeError:
        whole = False
    if not whole:
        raise TranscriptError(
            f"round: expected 0 or more, a whole number below 2^31, got {round!r:.40}"
        )


def path(folder: pathlib.Path, round: int) -> pathlib.Path:
    """The file of a round."""
    return folder / f"{round:09d}.npz"


def check_place(folder: pathlib.Path, round: int, last: int) -> None:
    """Raises unless a round comes after all that are recorded, and nobody else has it."""
    if round <= last:
        raise TranscriptError(
            f"round: expected more than {last}, got {round}; {folder} holds what was "
            "recorded before: go on from there with the model of then, or remove it to "
            "begin anew"
        )
    if path(folder, round).exists():
        raise TranscriptError(
            f"round {round}: {folder} has it from another recorder, which began since; "
            "expected a path for each training"
        )


def check_ids(round: int, clients: Mapping[int, Any]) -> None:
    """Raises unless these are clients of a round."""
    if not isinstance(clients, Mapping):
        raise TranscriptError(
            f"round {round}: expected {{client id: model}}, got {type(clients).__name__}"
        )
    if not clients:
        raise TranscriptError(f"round {round}: expected at least one client")
    if any(isinstance(c, bool) for c in clients) or not all(
        isinstance(c, int | np.integer) and 0 <= c < 2**63 for c in clients
    ):
        raise TranscriptError(
            f"round {round}: expected client ids that are integers from 0 to 2^63 - 1, got "
            f"{list(clients)[:3]}; client_names of the description, {{name: id}}, names "
            "them"
        )
    if len({int(client) for client in clients}) < len(clients):
        raise TranscriptError(f"round {round}: one client is there twice")


def of_sums(
    round: int, sums: Sequence[tuple[Mapping[int, float], Any]]
) -> tuple[dict[int, Any], dict[str, np.ndarray]]:
    """Of sums over clients the means by number; `member` and `share`, `[S, M]`.

    Raises:
      TranscriptError: they are no pairs of clients' weights and a mean.
    """
    if not sums:
        raise TranscriptError(f"round {round}: expected at least one sum")
    for each in sums:
        pair = isinstance(each, Sequence) and len(each) == 2
        if not pair or not isinstance(each[0], Mapping):
            raise TranscriptError(
                f"round {round}: expected a list of sums, each a pair (weights of its "
                f"clients by id, mean of their models), got one of {type(each).__name__}"
            )
        weights, _ = each
        check_ids(round, weights)
        if not all(0 < _number(weight) < np.inf for weight in weights.values()):
            raise TranscriptError(f"round {round}: expected weights above 0")
    most = max(len(weights) for weights, _ in sums)
    member = np.full((len(sums), most), -1, np.int64)
    share = np.zeros(member.shape)
    for at, (weights, _) in enumerate(sums):
        member[at, : len(weights)] = list(weights)
        share[at, : len(weights)] = list(map(_number, weights.values()))
    share /= share.max(axis=1, keepdims=True)  # a sum of large ones has no end
    share /= share.sum(axis=1, keepdims=True)
    means = {at: mean for at, (_, mean) in enumerate(sums)}
    return means, {"member": member, "share": share}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def compare(found: dict, expected: dict, where: str) -> None:
    """Raises unless names and shapes are those of the rounds before."""
    if missing := sorted(expected.keys() - found.keys()):
        raise TranscriptError(f"{where}: {missing[0]!r} is missing")
    if more := sorted(found.keys() - expected.keys()):
        raise TranscriptError(f"{where}: {more[0]!r} was not there before")
    for name, shape in found.items():
        if shape != expected[name]:
            raise TranscriptError(
                f"{where}: {name!r} has the shape {list(shape)}, "
                f"expected {list(expected[name])}"
            )


def check(round: int, arrays: dict[str, np.ndarray], ledger: Ledger | None) -> None:
    """Raises unless a round can be kept, and charged, as it is."""
    try:
        contents.check_names(arrays)
    except ValueError as error:
        raise TranscriptError(f"round {round}: {error}") from error
    if ledger is not None:
        ledger.check(round, present(arrays))


def folder(stem: pathlib.Path) -> pathlib.Path:
    """Where the rounds of a recording are, made if it is a new one.

    Raises:
      TranscriptError: the recording is finished, or the folder cannot be made.
    """
    found, finished = pathlib.Path(f"{stem}.rounds"), pathlib.Path(f"{stem}.npz")
    if finished.exists() and not found.exists():
        raise TranscriptError(
            f"{finished} is a finished recording: choose another path, or remove it"
        )
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TranscriptError(f"{found}: {error.strerror}") from error
    return found


def compare_kinds(path: pathlib.Path, found: dict, first: dict) -> None:
    """Raises unless a round is of messages, sums or models as the first is."""
    if found.keys() != first.keys():
        raise TranscriptError(f"{path}: expected arrays as in the rounds before")


def paths(folder: pathlib.Path) -> list[pathlib.Path]:
    """Files of the rounds so far, in the order of their numbers."""
    found = list(folder.glob("*.npz"))
    return sorted(found, key=lambda path: (len(path.stem), path.stem))


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The arrays of a round.

    Raises:
      TranscriptError: they are not those of one.
    """
    with archive.blaming(path):
        if not path.stem.isdecimal():
            raise ValueError("expected the number of a round as its name")
        with zipfile.ZipFile(path) as stored:
            archive.check_stored(stored, path)
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        one = {name: array[None] for name, array in arrays.items()}
        contents.check({**one, "round": np.array([int(path.stem)])})
        return arrays


def sent(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The model of a round alone, by the names of its parameters.

    Raises:
      TranscriptError: it cannot be read.
    """
    with archive.blaming(path):
        with zipfile.ZipFile(path) as stored:
            archive.check_stored(stored, path)
        with np.load(path, allow_pickle=False) as stored:
            return {
                name.removeprefix("params/"): stored[name]
                for name in stored
                if name.startswith("params/")
            }


def present(arrays: dict[str, np.ndarray]) -> list[int]:
    """Clients whose messages, or sums, a round has."""
    found = np.unique(arrays.get("member", arrays["client"]))
    return found[found >= 0].tolist()


def shapes(arrays: dict[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    """Shape of each parameter."""
    return {
        name.removeprefix("params/"): array.shape
        for name, array in arrays.items()
        if name.startswith("params/")
    }


def filled(name: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Rounds with as many slots, and members, as the fullest has."""
    if not arrays[0].ndim:  # a parameter that is one number
        return arrays
    shape = np.max([each.shape for each in arrays], axis=0)
    nobody = -1 if name in ("client", "member") else 0
    return [
        np.pad(
            each,
            [(0, most - size) for most, size in zip(shape, each.shape, strict=True)],
            constant_values=nobody,
        )
        for each in arrays
    ]
