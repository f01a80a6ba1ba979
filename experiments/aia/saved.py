"""Transcripts as files: of a training that is over, and in place of one."""

import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.aia import refusals, wall
from experiments.aia.settings import RunConfig
from experiments.aia.setup import Settings, Setup
from experiments.tabular import defense_config
from fljax import transcript
from fljax.driver.config import ConfigError, to_flags
from fljax.transcript import archive
from fljax.types import Transcript

_LONGEST = 200  # bytes of a file's name without its suffixes


def check(run: RunConfig, label: str) -> None:
    """Refuses what could not be saved after a training, or is not there to be read.

    Raises:
      ConfigError: naming the flag.
    """
    longest = max(len(_name(label, seed).encode()) for seed in run.seeds)
    if run.save_transcript and longest > _LONGEST:
        raise ConfigError(
            "--save_transcript: the points of --sweep and --defense name its files; "
            f"expected names of at most {_LONGEST} bytes, got {longest}"
        )
    if run.transcript is None:
        return
    if len(run.seeds) != 1:
        raise ConfigError("--transcript: expected exactly one seed in --seeds")
    for suffix in (".json", ".npz"):
        if not os.path.isfile(path := f"{archive.stem_of(run.transcript)}{suffix}"):
            raise ConfigError(
                f"--transcript: expected the path of a transcript; {path} is not there"
            )


def _name(label: str, seed: int) -> str:
    return "-".join(filter(None, ["transcript", label, f"seed{seed}"]))


def save(folder: pathlib.Path, setup: Setup, seen: Transcript) -> None:
    """Writes the transcript of each seed.

    Args:
      folder: of the run.
      setup: what was trained.
      seen: leaves `[seeds, ...]`.
    """
    config = setup.config
    trained = _training(config) | to_flags(config.model, "model")
    for index, seed in enumerate(config.run.seeds):
        about = trained | {"rows": _identity(setup, seed)}
        one = jax.tree.map(lambda leaf, i=index: np.asarray(leaf[i]), seen)
        transcript.save(folder / _name(setup.label, seed), one, about)


def load(stem: str, setup: Setup) -> Transcript:
    """A saved transcript in place of a training.

    Args:
      stem: path without `.npz`.
      setup: of one seed.

    Returns:
      Leaves `[1, ...]`.

    Raises:
      TranscriptError: it is none, or not of such a training on these rows.
    """
    seen, about = transcript.load(stem)
    rows = _identity(setup, setup.config.run.seeds[0])
    if about.get("rows", rows) != rows:
        raise transcript.TranscriptError(
            f"{stem}: recorded on other rows: --data_*, --partition_* or --seeds differ"
        )
    _check_training(stem, about, setup.config)
    expected = jax.eval_shape(setup.problem.model.init, jax.random.key(0))
    found = jax.tree.map(lambda leaf: leaf.shape[1:], seen.params)
    if found != jax.tree.map(lambda leaf: leaf.shape, expected):
        raise transcript.TranscriptError(
            f"{stem}: its parameters are not those of --model_name="
            f"{setup.config.model.name} on this data"
        )
    _check_messages(stem, seen)
    if seen.client.max(initial=-1) >= setup.clients.sizes.shape[1]:
        raise transcript.TranscriptError(
            f"{stem}: it has client {seen.client.max()}, the partition has only "
            f"{setup.clients.sizes.shape[1]} clients"
        )
    if "reconstruct" in setup.config.attack.kinds:
        recorded = np.asarray(seen.client)[None]
        refusals.check_messages(setup, recorded, "--transcript")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], seen)


def _check_messages(stem: str, seen: Transcript) -> None:
    """All clients' messages, in numbers; what an audit also takes is for audits."""
    lacking, numbers = "", jax.tree.leaves((seen.params, seen.delta))
    if seen.member is not None:
        lacking = "sums over clients"
    elif not seen.client.size or seen.client.max() < 0:
        lacking = "models without messages"
    elif not all(np.isfinite(leaf).all() for leaf in numbers):
        lacking = "messages that are not finite"
    if lacking:
        raise transcript.TranscriptError(
            f"{stem}: it has {lacking}; expected every client's messages, in finite "
            "numbers (fljax-audit takes others)"
        )


def _identity(setup: Setup, seed: int) -> dict[str, Any]:
    """Which rows a transcript was recorded on, for its description."""
    config = setup.config
    where = to_flags(config.data, "data") | to_flags(config.partition, "partition")
    # What is inferred stands last among a model's inputs.
    del where["data_dir"], where["data_also_sensitive"]
    where["data_sensitive"] = list(setup.table.concealed)
    hashes = [file.sha256 for file in setup.table.files]
    return where | {"seed": seed, "sha256": hashes}


def _training(config: Settings) -> dict[str, Any]:
    """How clients train, for the description of a transcript."""
    spec = defense_config.read(config.defense)
    defended = {"delta": config.defense.delta} if spec else {}
    trained = to_flags(config.train)
    schedule = wall.local_training(config.train).schedule
    if schedule:  # as other people's recordings say it
        trained["learning_rate"] = [config.train.learning_rate * f for f in schedule]
    if config.train.algorithm != "fed_prox":
        del trained["proximal"]
    return trained | {"defense": str(spec)} | defended


def _check_training(stem: str, about: dict[str, Any], config: Settings) -> None:
    """The defense must be that of the flags; so must the training, if it is replayed."""
    replayed = set(config.attack.kinds) - {"model", "grad", "reconstruct"}
    for name, value in _training(config).items():
        checked = name in ("defense", "delta") or (replayed and name != "lanes")
        value = list(value) if isinstance(value, tuple) else value  # as in JSON
        kept = about.get(name, "none" if name == "defense" else value)
        if checked and kept != value:
            raise transcript.TranscriptError(
                f"{stem}: recorded with --{name}={kept!s:.40}, the flags say {value!s:.40}"
            )
