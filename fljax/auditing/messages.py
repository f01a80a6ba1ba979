"""A transcript from a stranger, brought into the shape of the audited model.

Messages that are not finite, as a diverged training sends them, are left out and
counted; a client without any other is refused.
"""

import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np

from fljax import transcript
from fljax.auditing import architecture
from fljax.driver.config import ConfigError
from fljax.types import Model, Params, Transcript


class Messages(NamedTuple):
    """The audited clients' messages.

    Attributes:
      seen: the transcript, params in the model's structure and float32.
      row: `[C, Q]` recorded round of each finite message; the last one fills up.
      slot: `[C, Q]` place within the round.
      count: `[C]` finite messages.
      left_out: `[C]` others.
      exact: params and delta in the precision that they travelled in.
    """

    seen: Transcript
    row: np.ndarray
    slot: np.ndarray
    count: np.ndarray
    left_out: np.ndarray
    exact: tuple[Params, Params]

    @property
    def double(self) -> bool:
        """Whether they travelled as float64."""
        return all(leaf.dtype == np.float64 for leaf in jax.tree.leaves(self.exact))

    def flat(self, client: int) -> tuple[np.ndarray, np.ndarray]:
        """Sent and delta `[Q, P]` of one client in float64, in the order of leaves."""
        count = self.count[client]
        row, slot = self.row[client, :count], self.slot[client, :count]
        params, delta = self.exact
        sent = [np.asarray(leaf)[row] for leaf in jax.tree.leaves(params)]
        gone = [np.asarray(leaf)[row, slot] for leaf in jax.tree.leaves(delta)]
        return _joined(sent), _joined(gone)


class Received(NamedTuple):
    """A transcript as it was read: its path, its arrays and its description."""

    stem: str
    seen: Transcript
    about: dict[str, Any]

    @property
    def clients(self) -> np.ndarray:
        """Ids of all who sent something, increasing."""
        ids = np.unique(np.asarray(self.seen.client))
        return ids[ids >= 0]


def read(path: str) -> Received:
    """Reads a transcript.

    Args:
      path: with or without `.npz` or `.json`, or a folder with one transcript.

    Raises:
      ConfigError: there is none, or it is not finished.
      TranscriptError: it is damaged.
    """
    stem = _stem(pathlib.Path(path).expanduser())
    there = [pathlib.Path(f"{stem}{suffix}").is_file() for suffix in (".npz", ".json")]
    if not all(there) and pathlib.Path(f"{stem}.rounds").is_dir():
        raise ConfigError(
            f"--transcript: {stem} is not finished, its rounds are in {stem}.rounds; "
            "Recorder(STEM).finish() makes the transcript of them"
        )
    if not all(there):
        missing = f"{stem}{('.npz', '.json')[there.index(False)]}"
        raise ConfigError(f"--transcript: no file {missing}")
    return Received(str(stem), *transcript.load(stem))


def select(received: Received, model: Model, clients: np.ndarray) -> Messages:
    """The messages `[C, Q]` of these clients, arrays under the model's names.

    Raises:
      TranscriptError: the arrays are not the model's, or nothing of a client is finite.
    """
    stem, seen, _ = received
    params, delta = architecture.align(model, seen.params, seen.delta, stem)
    finite = _finite(params, 1)[:, None] & _finite(delta, 2)
    ids = np.asarray(seen.client)
    found = [np.nonzero((ids == client) & finite) for client in clients]
    total = np.array([(ids == client).sum() for client in clients])
    count = np.array([len(row) for row, _ in found])
    if not count.all():
        client = clients[count.argmin()]
        raise transcript.TranscriptError(
            f"{stem}.npz: no message of client {client} is finite: "
            f"{total[count.argmin()]} hold NaN or infinity"
        )
    last = np.arange(count.max())
    row, slot = (
        np.stack([np.take(each[axis], last, mode="clip") for each in found])
        for axis in (0, 1)
    )
    single = seen._replace(
        params=_single(params), delta=_single(delta), round=np.asarray(seen.round)
    )
    return Messages(single, row, slot, count, total - count, (params, delta))


def _stem(path: pathlib.Path) -> pathlib.Path:
    if path.is_dir():
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
    for suffix in (".npz", ".json"):
        if path.name.endswith(suffix):
            return path.with_name(path.name.removesuffix(suffix))
    return path


def _joined(leaves: list[np.ndarray]) -> np.ndarray:
    flat = [leaf.reshape(len(leaf), -1).astype(np.float64) for leaf in leaves]
    return np.concatenate(flat, axis=1)


def _finite(tree, axes: int) -> np.ndarray:
    """Whether all numbers behind the first axes are finite."""
    found = True
    for leaf in jax.tree.leaves(_single(tree)):
        fits = np.isfinite(leaf)
        found = found & fits.reshape(*leaf.shape[:axes], -1).all(axis=-1)
    return np.asarray(found)


def _single(tree):
    with np.errstate(over="ignore"):  # such messages are left out
        return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), tree)
