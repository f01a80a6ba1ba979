"""A transcript written while somebody else's federation trains.

Plain arrays of any framework go in; no JAX device is touched. Every round is one file in
`STEM.rounds/`, which appears by atomic rename, so that a crash loses at most the round
that was being recorded.
"""

import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from fljax import files
from fljax.transcript import aliasing, archive, description, pieces, resumed
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

    def __init__(
        self,
        stem: str | os.PathLike,
        about: dict[str, Any] | None = None,
        ledger: pieces.Ledger | None = None,
    ):
        """Creates the folder, or finds the rounds of an earlier recorder.

        Args:
          stem: path of the transcript, with or without `.npz`.
          about: free description. Attacks that imitate the clients read `optimiser` (sgd,
            adam, ...), `optimiser_state` (`kept` from round to round, or `new`), `momentum`,
            `weight_decay`, `learning_rate` (or a list, one for each round from 0 on),
            `batch_size` (null: all rows), `drop_last`, `dropout`, `local_epochs` or `local_steps`,
            `algorithm` with `proximal`, `defense` with `delta`, `loss` with its number, and
            `num_rounds`; an audit of rows whose clients have names reads `client_names`,
            `{name: client id}`.
          ledger: with nothing charged to it: every round that is recorded is, those of
            an earlier recorder first, and `privacy` of the description has what it says.

        Raises:
          TranscriptError: if there is a finished recording, the folder cannot be made,
            what is already there cannot be read, JSON cannot hold the description, or
            no attack could read it.
          ValueError: the ledger does not know a client that is there.
        """
        told = description.given(about)
        self._stem = archive.stem_of(stem).absolute()
        self._folder = pieces.folder(self._stem)
        self._earlier = pieces.paths(self._folder)  # rounds that are to be gone on with
        before = self._about = description.read(self._folder / _ABOUT)
        if told:
            if not self._earlier:  # a training without a round is described anew
                before = self._about = {}
            self.describe(**told)
            description.warn_of_changes(before, told, self._about)
        self._shapes: dict[str, tuple[int, ...]] | None = None
        self._watch = aliasing.Watch()
        self._last, self._kind = -1, None  # of what the rounds are
        self._ledger = ledger
        if there := self._earlier:
            last = pieces.read(there[-1])
            self._last = int(there[-1].stem)
            self._shapes = pieces.shapes(last)
            self._kind = {"member", "share"} & set(last), len(last["client"]) > 0
            if ledger is not None:
                for path in there:
                    ledger.charge(int(path.stem), pieces.present(pieces.read(path)))

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

        Names that nothing reads and that are near to one that attacks read are warned of.

        Raises:
          TranscriptError: it cannot be put in words, or read by attacks; it stays as it was.
          OSError: naming the file, which cannot be written.
        """
        self._about = description.written(self._folder / _ABOUT, self._about | about)

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
        self._check_place(round)
        pieces.check_ids(round, returned)
        self._keep(round, sent, returned, {})

    def record_sums(
        self, round: int, sent: Arrays, sums: Sequence[tuple[Mapping[int, float], Arrays]]
    ) -> None:  # fmt: skip
        """Writes one round of secure aggregation, of which only sums are seen.

        Args:
          round: as in `record`.
          sent: as in `record`.
          sums: one for each group of clients, mostly a single one: client id -> its
            weight, e.g. its number of rows, and the weighted mean of the models that
            these clients returned.

        Raises:
          TranscriptError: as `record` does.
        """
        self._check_place(round)
        means, members = pieces.of_sums(round, sums)
        self._keep(round, sent, means, members)

    def record_model(self, round: int, model: Arrays) -> None:
        """Writes the global model of a round, all that a participating client sees.

        The description says how models become sums: `server_optimiser` (sgd),
        `server_learning_rate` (1) and `participation` (all) are as in parentheses
        where it says nothing.

        Args:
          round: as in `record`.
          model: arrays of floating point by name.

        Raises:
          TranscriptError: as `record` does.
        """
        self._check_place(round)
        if self._ledger is not None:
            raise TranscriptError(
                f"round {round}: expected messages or sums, for a model does not say to "
                "whom the ledger is to charge it"
            )
        self._keep(round, model, {}, {})

    def _keep(
        self, round: int, sent: Arrays, returned: Mapping[int, Arrays], more: dict
    ) -> None:
        """Writes a round of checked ids, if its models fit those before."""
        given = {"sent": sent} | {f"client {c}": each for c, each in returned.items()}
        models = {
            who: arrays_lib.named(arrays, f"round {round}, {who}")
            for who, arrays in given.items()
        }
        left_out = self._leave_out(round, models)
        model, *answers = models.values()
        shapes = arrays_lib.shapes(model)
        for who, arrays in models.items():
            expected = shapes if who != "sent" else self._shapes or shapes
            pieces.compare(arrays_lib.shapes(arrays), expected, f"round {round}, {who}")
        if self._earlier:
            resumed.check(self._earlier, model)
        deltas = [
            {k: array - each[k] for k, array in model.items()} for each in answers
        ]
        if returned:
            said = aliasing.one_memory(returned, deltas)
            if said := said or self._watch.look(model, deltas):
                raise TranscriptError(f"round {round}: {said}")
        kind = set(more), bool(returned)
        if self._kind not in (None, kind):
            raise TranscriptError(
                f"round {round}: expected what the rounds before have, one of messages "
                "(record), sums (record_sums) or models (record_model)"
            )
        self._say(left_out)
        kept = {"client": np.array(list(returned), np.int64), **more}
        for name, array in model.items():
            kept[f"params/{name}"] = array
            none = np.zeros((0, *array.shape), array.dtype)
            kept[f"delta/{name}"] = (
                np.stack([each[name] for each in deltas]) if deltas else none
            )
        pieces.check(round, kept, self._ledger)
        with files.replacing(pieces.path(self._folder, round)) as file:
            np.savez(file, allow_pickle=False, **kept)
        self._last, self._shapes, self._kind = round, shapes, kind
        self._earlier = []
        if self._ledger is not None:
            self._ledger.charge(round, pieces.present(kept))

    def _check_place(self, round: int) -> None:
        """The number of a round."""
        description.check_open(self._folder)
        pieces.check_number(round)
        pieces.check_place(self._folder, round, self._last)

    def _leave_out(self, round: int, models: dict[str, dict[str, np.ndarray]]) -> set:
        """Takes out what is of integers, or was once: averages of integers are floats."""
        names = set(self._about.get(_LEFT_OUT, ()))
        for who, model in models.items():
            whole = arrays_lib.integers(model)
            if changed := whole & set(self._shapes or ()):
                raise TranscriptError(
                    f"round {round}, {who}: {min(changed)!r} is of integers, of floating "
                    "point in the rounds before"
                )
            names |= whole
        for model in models.values():
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
        paths = pieces.paths(self._folder)
        if not paths:
            raise TranscriptError(f"{self._folder}: no round was recorded")
        if self._ledger is not None:
            self.describe(privacy=self._ledger.statement())
        rounds = [pieces.read(path) for path in paths]
        for path, each in zip(paths, rounds, strict=True):
            pieces.compare(pieces.shapes(each), pieces.shapes(rounds[0]), str(path))
            pieces.compare_kinds(path, each, rounds[0])
        arrays = {
            name: np.stack(pieces.filled(name, [each[name] for each in rounds]))
            for name in rounds[0]
        }
        arrays["round"] = np.array([int(path.stem) for path in paths])
        archive.write(self._stem, arrays, self._about)
        done = f"{self._folder}.done"  # at once, so that none goes on after it
        shutil.rmtree(done, ignore_errors=True)
        shutil.rmtree(self._folder.rename(done))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind, error, trace) -> None:
        if kind is None:
            self.finish()
