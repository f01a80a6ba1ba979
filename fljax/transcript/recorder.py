"""A transcript written while somebody else's federation trains.

Plain arrays of any framework go in; no JAX device is touched. Every round is one file in
`STEM.rounds/`, which appears by atomic rename, so that a crash loses at most the round
that was being recorded.
"""

import json
import os
import pathlib
import shutil
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from fljax import files
from fljax.transcript import aliasing, archive
from fljax.transcript import arrays as arrays_lib
from fljax.transcript.arrays import Arrays
from fljax.transcript.views import TranscriptError

_ABOUT = "about.json"  # in the folder of the rounds
_LEFT_OUT = "left_out"  # in the description


class Recorder:
    """Writes a transcript round by round; may go on after a crash.

    ```python
    about = {"optimiser": "sgd", "learning_rate": 0.05, "batch_size": 32, "local_epochs": 1}
    with transcript.Recorder("runs/seen", about) as recorder:
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
          about: free description. Attacks that imitate the clients read `optimiser` (sgd,
            adam, ...), `momentum`, `weight_decay`, `learning_rate`, `batch_size` (null:
            all rows), `local_epochs` or `local_steps`, `algorithm` and `defense`; an audit of
            rows whose clients have names reads `client_names`, `{name: client id}`.

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
        self._watch = aliasing.Watch()
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

        Arrays of integers, such as batch norm's counters, are left out with a warning;
        `left_out` of the description has their names.

        Args:
          round: its number, above that of the round before.
          sent: the model that every client was sent, arrays of floating point.
          returned: client id -> the model that it returned, in the shapes of `sent`.

        Raises:
          TranscriptError: naming what does not fit; nothing is written then. Models
            that were not copied in time do not fit, see `transcript.aliasing`.
        """
        self._check_place(round, returned)
        model = arrays_lib.named(sent, f"round {round}, sent")
        answers = [
            arrays_lib.named(arrays, f"round {round}, client {client}")
            for client, arrays in returned.items()
        ]
        left_out = self._leave_out(round, [model, *answers])
        shapes = {name: array.shape for name, array in model.items()}
        _compare(shapes, self._shapes or shapes, f"round {round}, sent")
        for client, arrays in zip(returned, answers, strict=True):
            found = {name: array.shape for name, array in arrays.items()}
            _compare(found, shapes, f"round {round}, client {client}")
        deltas = [
            {k: array - each[k] for k, array in model.items()} for each in answers
        ]
        said = aliasing.one_memory(returned, deltas) or self._watch.look(model, deltas)
        if said:
            raise TranscriptError(f"round {round}: {said}")
        self._say(left_out)
        kept = {"client": np.array(list(returned), np.int64)}
        for name, array in model.items():
            kept[f"params/{name}"] = array
            kept[f"delta/{name}"] = np.stack([each[name] for each in deltas])
        with files.replacing(self._folder / f"{round:09d}.npz") as file:
            np.savez(file, allow_pickle=False, **kept)
        self._last, self._shapes = round, shapes

    def _check_place(self, round: int, returned: Mapping[int, Arrays]) -> None:
        """The number of a round and the ids of its clients."""
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
        if not all(isinstance(c, int | np.integer) and c >= 0 for c in returned):
            raise TranscriptError(
                f"round {round}: expected client ids that are integers of 0 or more, got "
                f"{list(returned)[:3]}"
            )
        if len({int(client) for client in returned}) < len(returned):
            raise TranscriptError(f"round {round}: one client is there twice")

    def _leave_out(self, round: int, models: list[dict[str, np.ndarray]]) -> set[str]:
        """Takes out what is of integers, or was once: averages of integers are floats."""
        names = set(self._about.get(_LEFT_OUT, ()))
        names |= set().union(*map(arrays_lib.integers, models))
        for model in models:
            for name in names & model.keys():
                del model[name]
            if not model:
                raise TranscriptError(
                    f"round {round}: expected arrays of floating point by name, got none"
                )
        return names

    def _say(self, left_out: set[str]) -> None:
        """Warns of, and describes, what is newly left out."""
        if new := left_out - set(self._about.get(_LEFT_OUT, ())):
            self.describe(**{_LEFT_OUT: sorted(left_out)})
            warnings.warn(
                f"{self._stem}: arrays of integers are not recorded: "
                f"{', '.join(sorted(new))}",
                stacklevel=3,
            )

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


def _plain(value: Any) -> Any:
    """NumPy's and JAX's numbers and arrays, as JSON has them."""
    if not hasattr(value, "dtype"):
        raise TypeError(f"{value!r:.60} is nothing that JSON can hold")
    return np.asarray(value).tolist()


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
