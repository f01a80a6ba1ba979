"""Transcripts as files: of a training that is over, and in place of one."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.aia import defense_config, reconstruction
from experiments.aia.scene import Prepared, Settings
from fljax import transcript
from fljax.driver import config
from fljax.types import Transcript


def save(folder: pathlib.Path, prepared: Prepared, seen: Transcript) -> None:
    """Writes the transcript of each seed.

    Args:
      folder: of the run.
      prepared: what was trained.
      seen: leaves `[seeds, ...]`.
    """
    told = prepared.told
    trained = _training(told) | config.to_flags(told.model, "model")
    for index, seed in enumerate(told.run.seeds):
        about = trained | {"rows": _identity(prepared, seed)}
        one = jax.tree.map(lambda leaf, i=index: np.asarray(leaf[i]), seen)
        plain = jax.tree.map(lambda leaf: leaf.astype(np.float32), one.delta)
        one = one._replace(delta=plain)  # NumPy's format has no bfloat16
        stem = "-".join(filter(None, ["transcript", prepared.label, f"seed{seed}"]))
        transcript.save(folder / stem, one, about)


def load(stem: str, prepared: Prepared) -> Transcript:
    """A saved transcript in place of a training.

    Args:
      stem: path without `.npz`.
      prepared: of one seed.

    Returns:
      Leaves `[1, ...]`.

    Raises:
      TranscriptError: it is none, or not of such a training on these rows.
    """
    seen, about = transcript.load(stem)
    rows = _identity(prepared, prepared.told.run.seeds[0])
    if about.get("rows", rows) != rows:
        raise transcript.TranscriptError(
            f"{stem}: recorded on other rows: --data_*, --partition_* or --seeds differ"
        )
    _check_training(stem, about, prepared.told)
    expected = jax.eval_shape(prepared.problem.model.init, jax.random.key(0))
    found = jax.tree.map(lambda leaf: leaf.shape[1:], seen.params)
    if found != jax.tree.map(lambda leaf: leaf.shape, expected):
        raise transcript.TranscriptError(
            f"{stem}: its parameters are not those of --model_name="
            f"{prepared.told.model.name} on this data"
        )
    if seen.client.max(initial=-1) >= prepared.clients.sizes.shape[1]:
        raise transcript.TranscriptError(
            f"{stem}: it has client {seen.client.max()}, the partition has only "
            f"{prepared.clients.sizes.shape[1]} clients"
        )
    if "reconstruct" in prepared.told.attack.kinds:
        recorded = np.asarray(seen.client)[None]
        reconstruction.check_messages(prepared, recorded, "--transcript")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], seen)


def _identity(prepared: Prepared, seed: int) -> dict[str, Any]:
    """Which rows a transcript was recorded on, for its description."""
    told = prepared.told
    where = config.to_flags(told.data, "data") | config.to_flags(
        told.partition, "partition"
    )
    del where["data_dir"], where["data_sensitive"]
    hashes = [file.sha256 for file in prepared.table.files]
    return where | {"seed": seed, "sha256": hashes}


def _training(told: Settings) -> dict[str, Any]:
    """How clients train, for the description of a transcript."""
    spec = defense_config.read(told.defense)
    defended = {"delta": told.defense.delta} if spec else {}
    return config.to_flags(told.train) | {"defense": str(spec)} | defended


def _check_training(stem: str, about: dict[str, Any], told: Settings) -> None:
    """The defense must be that of the flags; so must the training, if it is replayed."""
    replayed = set(told.attack.kinds) - {"model", "grad", "reconstruct"}
    for name, value in _training(told).items():
        checked = name in ("defense", "delta") or (replayed and name != "lanes")
        value = list(value) if isinstance(value, tuple) else value  # as in JSON
        kept = about.get(name, "none" if name == "defense" else value)
        if checked and kept != value:
            raise transcript.TranscriptError(
                f"{stem}: recorded with --{name}={kept}, the flags say {value}"
            )
