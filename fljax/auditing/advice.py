"""What to do about a leak: the command that tries a defense on the same rows."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fljax.attacks.adversary import LocalTraining
from fljax.driver import config
from fljax.transcript.views import View

EPSILON = 8  # of a record, that is tried first against a leak

# How CSV files are read, by the flags of both programs, and as they usually are.
_USUAL = {
    "numeric": (), "categorical": (), "missing": "error", "missing_codes": (),
    "separator": ",", "decimal": ".", "thousands": "", "encoding": "utf-8",
    "task": None,
}  # fmt: skip


class Advice(NamedTuple):
    """What to do about a leak.

    Attributes:
      why: which defense has a guarantee, and what the command does.
      command: that tries it on the same rows.
      then: what follows.
    """

    why: str
    command: str
    then: str


def what_to_do(
    flags: Mapping[str, Any],
    clients: Sequence[str],
    training: LocalTraining,
    num_rounds: int | None = None,
    sees: View = "messages",
) -> Advice:
    """Which defenses to try, and the command that tries one on the same rows.

    Args:
      flags: of the audit.
      clients: what the column of clients calls those of the recording, where the rows are
        of others, too.
      training: how they train, as far as is known.
      num_rounds: of the training, None where that is not known.
      sees: what the adversary of the audit does.
    """
    trained = _trained(training)
    owner = flags.get("client_column")
    dropped = config.to_text([*(flags.get("drop") or ()), *([owner] if owner else ())])
    rows = {
        "data_name": "csv",
        "data_path": flags.get("known"),
        "data_target": flags.get("target"),
        "data_sensitive": flags.get("sensitive"),
        "data_drop": dropped or None,
        **{f"data_{name}": _told(flags, name, usual) for name, usual in _USUAL.items()},
        "partition_kind": "by_column" if owner else None,
        "partition_column": owner,
        "partition_values": config.to_text([*map(str, clients)]) if clients else None,
        **_model(flags.get("model")),
        "num_rounds": num_rounds,
        **trained,
        "adversary": None if sees == "messages" else sees,
        "sweep": f"defense=none; defense=dp_sgd(clip=0.1|1|10, epsilon={EPSILON})",
    }
    told = (f"--{name}={value}" for name, value in rows.items() if value is not None)
    return Advice(
        "noise on every example's gradient (dp_sgd, fed_cdp) is the defense with a "
        "guarantee. This trains on the same rows without a defense and with one, and attacks "
        "both, beside what the models explain, in a clone of the repository, with the path of "
        "the rows from there:",
        f"python -m experiments.aia {shlex.join(told)}",
        (
            ""
            if "learning_rate" in trained
            else "Run it with the learning rate of your training. "
        )
        + "Then record your own training with the defense, and audit that. Where it stops "
        f"these attacks, epsilon={EPSILON} still promises little; epsilon=1 is a promise.",
    )


def _trained(training: LocalTraining) -> dict[str, str]:
    """How clients train by the flags of `experiments.aia`, without what is not known."""
    if training.algorithm == "fed_sgd":  # whose rate is the server's
        return {"algorithm": "fed_sgd"}
    rate, rows, falls = training.learning_rate, training.batch_size, _falls(training)
    rate = None if falls is None else rate  # of a schedule that has no flag
    optimiser = "momentum" if training.momentum else training.optimiser
    proximal = training.proximal if training.algorithm == "fed_prox" else None
    named = optimiser if optimiser in ("momentum", "adam") else None
    found = {
        "learning_rate": None if rate is None else f"{rate:g}",
        "learning_rate_decay": f"{falls:.6g}" if rate and falls != 1 else None,
        "batch_size": "none" if rows == 0 else rows,
        "drop_last": "true" if training.drop_last else None,
        "local_epochs": None if training.steps else training.epochs,
        "local_steps": training.steps,
        "client_optimiser": named,
        "optimiser_state": "kept" if named and training.kept else None,
        "dropout": f"{training.dropout:g}" if training.dropout else None,
        "algorithm": "fed_prox" if proximal else None,
        "proximal": f"{proximal:g}" if proximal else None,
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def _falls(training: LocalTraining) -> float | None:
    """What the rate is multiplied by after each round; None where that changes, or > 1."""
    rates = np.asarray(training.schedule or (1.0,))
    falls = float((rates[1:] / rates[:-1]).mean()) if len(rates) > 1 else 1.0
    even = np.allclose(rates[1:], falls * rates[:-1], rtol=1e-4)
    return falls if even and falls <= 1 else None


def _model(name: str | None) -> dict[str, str]:
    """A model of the audit by the flags of `experiments.aia`, where it has it."""
    kind, _, hidden = (name or "").partition(":")
    if kind == "mlp" and hidden:
        return {"model_name": "mlp", "model_hidden": hidden}
    return {"model_name": "linear"} if name == "linear" else {}


def _told(flags: Mapping[str, Any], name: str, usual: Any) -> str | None:
    """How the audit was told to read the rows; None for the usual way."""
    value = flags.get(name)
    if value in (None, usual, [], ()):
        return None
    return config.to_text(value)
