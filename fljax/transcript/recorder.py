"""A transcript written while somebody else's federation trains.

Plain arrays of any framework go in; no JAX device is touched. Every round is one file in
`STEM.rounds/`, which appears by atomic rename, so that a crash loses at most the round
that was being recorded.
"""

import json
import os
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from fljax import files
from fljax.transcript import archive
from fljax.transcript.views import TranscriptError

Arrays = Mapping[str, Any]
# Layer -> arrays by name, or further layers; or `LAYER/NAME` -> array.

_ABOUT = "about.json"  # in the folder of the rounds


class Recorder:
    """Writes a transcript round by round; may go on after a crash.

    ```python
    with transcript.Recorder("runs/seen", about={"batch_size": 32}) as recorder:
        for number in range(rounds):
            ...  # sent: {"dense/kernel": array, ...}; returned: {client id: the same}
            recorder.record(number, sent, returned)
    ```

    Leaving the block without an error calls `finish`, which makes the two files that
    `load` reads. A second `Recorder` on the same stem goes on after `last_round`.
    """

    def __init__(self, stem: str | os.PathLike, about: dict[str, Any] | None = None):
        """Creates the folder, or finds the rounds of an earlier recorder.

        Args:
          stem: path of the transcript, without a suffix.
          about: free description: batch size, learning rate, epochs, model.

        Raises:
          TranscriptError: if the folder cannot be made, what is already there cannot be
            read, or JSON cannot hold the description.
        """
        self._stem = pathlib.Path(stem)
        self._folder = pathlib.Path(f"{self._stem}.rounds")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TranscriptError(f"{self._folder}: {error.strerror}") from error
        self._about = _described(self._folder / _ABOUT)
        if about:
            self.describe(**about)
        self._shapes: dict[str, tuple[int, ...]] | None = None
        self._last = -1
        if there := sorted(self._folder.glob("*.npz")):
            self._last = int(there[-1].stem)
            self._shapes = _shapes(_read(there[-1]))

    @property
    def last_round(self) -> int:
        """The last round that is recorded, -1 before the first."""
        return self._last

    @property
    def about(self) -> dict[str, Any]:
        """The description so far, with that of an earlier recorder."""
        return dict(self._about)

    def describe(self, **about: Any) -> None:
        """Adds to the description; survives a crash as the rounds do.

        Raises:
          TranscriptError: for what JSON cannot hold; the description stays as it was.
        """
        described = self._about | about
        try:
            text = json.dumps(described, default=_plain)
        except (TypeError, ValueError) as error:
            raise TranscriptError(f"about: {error}") from error
        files.write_text(self._folder / _ABOUT, text + "\n")
        self._about = json.loads(text)

    def record(self, round: int, sent: Arrays, returned: Mapping[int, Arrays]) -> None:
        """Writes one round.

        Args:
          round: its number, above that of the round before.
          sent: the model that every client was sent, arrays of floating point.
          returned: client id -> the model that it returned, in the shapes of `sent`.

        Raises:
          TranscriptError: naming what does not fit; nothing is written then.
        """
        if round < 0:
            raise TranscriptError(f"round: expected 0 or more, got {round}")
        if round <= self._last:
            raise TranscriptError(
                f"round: expected more than {self._last}, got {round}; {self._folder} "
                "holds what was recorded before: go on from there with the model of "
                "then, or remove it to begin anew"
            )
        if not returned:
            raise TranscriptError(f"round {round}: expected at least one client")
        model = _named(sent, f"round {round}, sent")
        shapes = {name: array.shape for name, array in model.items()}
        _compare(shapes, self._shapes or shapes, f"round {round}, sent")
        if not all(isinstance(c, int | np.integer) and c >= 0 for c in returned):
            raise TranscriptError(
                f"round {round}: expected client ids that are integers of 0 or more, got "
                f"{list(returned)[:3]}"
            )
        found = {"client": np.array(list(returned), np.int64)}
        if len(set(found["client"].tolist())) < len(returned):
            raise TranscriptError(f"round {round}: one client is there twice")
        answers = []
        for client, arrays in returned.items():
            where = f"round {round}, client {client}"
            answers.append(_named(arrays, where))
            _compare({k: v.shape for k, v in answers[-1].items()}, shapes, where)
        for name, array in model.items():
            found[f"params/{name}"] = array
            found[f"delta/{name}"] = np.stack([array - each[name] for each in answers])
        with files.replacing(self._folder / f"{round:09d}.npz") as file:
            np.savez(file, allow_pickle=False, **found)
        self._last, self._shapes = round, shapes

    def finish(self) -> None:
        """Makes `STEM.npz` and `STEM.json` of all rounds and removes their folder.

        Raises:
          TranscriptError: for no round at all, or one that cannot be read.
        """
        paths = sorted(self._folder.glob("*.npz"))
        if not paths:
            raise TranscriptError(f"{self._folder}: no round was recorded")
        rounds = [_read(path) for path in paths]
        for path, each in zip(paths, rounds, strict=True):
            _compare(_shapes(each), _shapes(rounds[0]), str(path))
        slots = max(len(each["client"]) for each in rounds)
        arrays = {
            name: np.stack([_filled(name, each[name], slots) for each in rounds])
            for name in rounds[0]
        }
        arrays["round"] = np.array([int(path.stem) for path in paths])
        archive.write(self._stem, arrays, self._about)
        shutil.rmtree(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind, error, trace) -> None:
        if kind is None:
            self.finish()


def _named(tree: Arrays, where: str) -> dict[str, np.ndarray]:
    """`LAYER/NAME` -> a copy in main memory, of floating point."""
    found = {}
    for name, leaf in _leaves(tree, ""):
        array = np.array(leaf)
        if array.dtype.name == "bfloat16":  # which NumPy's format does not have
            array = array.astype(np.float32)
        if array.dtype.kind != "f":
            raise TranscriptError(
                f"{where}: {name!r} is of type {array.dtype}, not of floating point"
            )
        found[name] = array
    if not found:
        raise TranscriptError(f"{where}: expected arrays by name, got none")
    return dict(sorted(found.items()))


def _plain(value: Any) -> Any:
    """NumPy's and JAX's numbers and arrays, as JSON has them."""
    if not hasattr(value, "dtype"):
        raise TypeError(f"{value!r:.60} is nothing that JSON can hold")
    return np.asarray(value).tolist()


def _leaves(tree: Arrays, prefix: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, Mapping):
        raise TranscriptError(
            f"{prefix or 'model'}: expected arrays by name, got {type(tree).__name__}"
        )
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}/")
        else:
            yield name, value


def _compare(found: dict, expected: dict, where: str) -> None:
    if missing := sorted(expected.keys() ^ found.keys()):
        raise TranscriptError(f"{where}: {missing[0]!r} is missing or was not there")
    for name, shape in found.items():
        if shape != expected[name]:
            raise TranscriptError(
                f"{where}: {name!r} has the shape {list(shape)}, "
                f"expected {list(expected[name])}"
            )


def _read(path: pathlib.Path) -> dict[str, np.ndarray]:
    with archive.blaming(path), np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _described(path: pathlib.Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    with archive.blaming(path):
        return dict(**json.loads(path.read_text(encoding="utf-8")))


def _shapes(arrays: dict[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {
        name.removeprefix("params/"): array.shape
        for name, array in arrays.items()
        if name.startswith("params/")
    }


def _filled(name: str, array: np.ndarray, slots: int) -> np.ndarray:
    """A round's clients and deltas padded to as many slots as the fullest round has."""
    if name.startswith("params/"):
        return array
    pad = [(0, slots - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, pad, constant_values=-1 if name == "client" else 0)
