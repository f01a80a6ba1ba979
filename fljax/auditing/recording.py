"""A transcript from a stranger, brought into the shape of the audited model.

Messages that are not finite, as a diverged training sends them, are left out and
counted; a client without any other is refused.
"""

import hashlib
import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np

from fljax import transcript
from fljax.auditing import architecture
from fljax.driver.config import ConfigError
from fljax.transcript import aliasing, archive, contents, sums, told, views
from fljax.types import Model, Transcript

IN_MEMORY = "(transcript in memory)"  # what messages call it


class Selected(NamedTuple):
    """The audited clients' messages.

    Attributes:
      transcript: arrays under the model's names, in the precision that they travelled in.
      messages: where the finite ones lie, `[C, Q]`.
      left_out: `[C]` how many are not finite.
    """

    transcript: Transcript
    messages: views.ClientView
    left_out: np.ndarray


class Recording(NamedTuple):
    """A transcript as it was read: its path, its arrays and its description."""

    stem: str
    seen: Transcript
    about: dict[str, Any]

    @property
    def clients(self) -> np.ndarray:
        """Ids of all who sent something, or are in a sum, increasing."""
        seen = self.seen
        ids = np.unique(seen.client if seen.member is None else seen.member)
        return ids[ids >= 0]

    @property
    def sees(self) -> views.View:
        """What whoever recorded it saw."""
        if not np.shape(self.seen.client)[1]:  # of two models in a row a sum is made
            told = (np.diff(self.seen.round) == 1).any()
            return "models" if told else "final"
        return "messages" if self.seen.member is None else "sum"


def read(path: str) -> Recording:
    """Reads a transcript.

    Args:
      path: with or without `.npz` or `.json`, or a folder with one transcript.

    Raises:
      ConfigError: there is none, or it is not finished.
      TranscriptError: it is damaged.
    """
    try:
        stem = _stem(pathlib.Path(path).expanduser())
        files = [pathlib.Path(f"{stem}{suffix}") for suffix in (".npz", ".json")]
        there = [file.is_file() for file in files]
        unfinished = not all(there) and pathlib.Path(f"{stem}.rounds").is_dir()
    except (OSError, RuntimeError) as error:  # the latter of `~somebody`
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--transcript: {path:.80}: {reason}") from error
    if unfinished:
        raise ConfigError(
            f"--transcript: {stem} is not finished, its rounds are in {stem}.rounds; "
            "Recorder(STEM).finish() makes the transcript of them"
        )
    if not all(there):
        raise ConfigError(f"--transcript: no file {files[there.index(False)]}")
    return Recording(str(stem), *transcript.load(stem))


def of(seen: Transcript, about: dict[str, Any] | None = None) -> Recording:
    """A transcript that is in memory, checked as a file is.

    Raises:
      ConfigError: it is none of one seed.
    """
    try:
        arrays = archive.arrays(seen)
        contents.check(arrays)
    except ValueError as error:
        raise ConfigError(f"--transcript: {error}") from error
    arrays = contents.with_ids(arrays)
    ids = {name: arrays.get(name) for name in contents.IDS}
    seen = jax.tree.map(np.asarray, seen)._replace(**ids)
    return Recording(IN_MEMORY, seen, about or {})


def sha256(seen: Transcript) -> str:
    """Of all that was recorded."""
    found = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(seen):
        array = np.ascontiguousarray(leaf)
        found.update(f"{path} {array.dtype} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def with_sums(recording: Recording, owner: np.ndarray | None) -> Recording:
    """The same with sums where only global models were recorded.

    Args:
      recording: as it was read.
      owner: client of each row, None where it is not known.

    Raises:
      ConfigError: it has to be.
      TranscriptError: the description of the server is not what it should be.
    """
    stem, seen, about = recording
    if recording.sees not in ("models", "final"):
        return recording
    if owner is None and recording.sees == "models":
        raise ConfigError(
            f"--client_column: {stem} has global models only, expected the column that "
            "tells whose rows made them"
        )
    known = np.zeros(1, np.int64) if owner is None else owner[owner >= 0]
    ids, counts = np.unique(known, return_counts=True)
    server = sums.Server(ids, counts, *told.server(about, f"{stem}.json: about"))
    make = sums.models if recording.sees == "models" else sums.final
    return recording._replace(seen=make(seen, server))


def notes(recording: Recording) -> list[str]:
    """What is taken for granted of a recording without single messages, in words."""
    rounds = np.asarray(recording.seen.round)
    if recording.sees == "final" and len(rounds) > 1:
        text = (
            f"The last of {len(rounds)} global models is attacked alone: of rounds that "
            "do not follow each other nobody knows what was added up. Record every round."
        )
        return [text]
    if recording.sees != "models":
        return []
    asked = ("participation", "server_optimiser", "server_learning_rate")
    missing = [name for name in asked if name not in recording.about]
    rate, everybody = told.server(recording.about, f"{recording.stem}.json: about")
    if not missing or rate is None or not everybody:  # then they tell no sums
        return []
    text = (
        "Only global models were recorded. Each is taken for the mean of what all "
        "clients in the rows returned, weighted by their rows, since the recording's "
        f"about says nothing of {', '.join(missing)}."
    )
    return [text]


def select(recording: Recording, model: Model, clients: np.ndarray) -> Selected:
    """The messages of these clients, arrays under the model's names.

    Raises:
      TranscriptError: the arrays are not the model's, nothing of a client is finite, or
        models were not copied when they were recorded.
    """
    stem, seen, _ = recording
    params, delta = architecture.align(model, seen.params, seen.delta, stem)
    _check_copies(seen, stem)
    finite = _finite(params, 1)[:, None] & _finite(delta, 2)
    view = views.client_view(seen, clients, finite)
    member = seen.client[..., None] if seen.member is None else seen.member
    sent = np.array([(member == each).any(axis=-1).sum() for each in clients])
    silent = np.flatnonzero(view.count == 0)
    if len(silent):
        raise transcript.TranscriptError(
            f"{stem}.npz: no message of client {clients[silent[0]]} is finite: "
            f"{sent[silent[0]]} hold NaN or infinity; --client names those to audit"
        )
    return Selected(seen._replace(params=params, delta=delta), view, sent - view.count)


def _check_copies(seen: Transcript, stem: str) -> None:
    """The recorder does so; others write files, too."""
    watch = aliasing.Watch()
    for at, number in enumerate(np.asarray(seen.round)[: aliasing.SURE]):
        slots = np.flatnonzero(np.asarray(seen.client)[at] >= 0)
        if not len(slots):
            return
        said = watch.look(
            _row(seen.params, at), [_row(seen.delta, (at, slot)) for slot in slots]
        )
        if said:
            raise transcript.TranscriptError(f"{stem}: round {number}: {said}")


def _row(tree, at) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {str(path): np.asarray(leaf)[at] for path, leaf in leaves}


def _stem(path: pathlib.Path) -> pathlib.Path:
    own = (path.with_name(path.name + suffix) for suffix in (".npz", ".json"))
    if path.is_dir() and not all(each.is_file() for each in own):
        stems = sorted(
            found.with_name(found.name.removesuffix(".npz"))
            for found in path.glob("*.npz")
        )
        if len(stems) != 1:
            names = ", ".join(each.name for each in stems) or "none"
            raise ConfigError(
                f"--transcript: expected one transcript in {path}, found {names}"
            )
        return stems[0]
    return archive.stem_of(path)


def _finite(tree, axes: int) -> np.ndarray:
    """Whether all numbers behind the first axes are finite in float32."""
    found: Any = True
    for leaf in jax.tree.leaves(tree):
        with np.errstate(over="ignore"):
            fits = np.isfinite(np.asarray(leaf, np.float32))
        found = found & fits.reshape(*leaf.shape[:axes], -1).all(axis=-1)
    return np.asarray(found)
