"""What an audit found, in sentences for whoever has to decide."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fljax import verdicts
from fljax.attacks.adversary import LocalTraining
from fljax.auditing import doubts
from fljax.auditing.lines import MISFIT, Line
from fljax.driver import config
from fljax.fit import UNLEARNT
from fljax.transcript.views import View
from fljax.verdicts import ACCURACY, DISTANCE, ERROR, IMPUTATION, STRANGERS

EPSILON = 8  # of a record, that is tried first against a leak
_REFERENCES = {
    IMPUTATION: "the other columns alone, learned from other people's rows, name {}",
    STRANGERS: "on people who never met these messages the attack names {}",
}

# How CSV files are read, by the flags of both programs, and as they usually are.
_USUAL = {
    "numeric": (), "categorical": (), "missing": "error", "missing_codes": (),
    "separator": ",", "decimal": ".", "thousands": "", "encoding": "utf-8",
    "task": None,
}  # fmt: skip


def summary(sensitive: str, lines: Sequence[Line], clients: Sequence[str]) -> list[str]:
    """What leaks, to whom and how surely; what does not.

    Args:
      sensitive: name of the inferred column.
      lines: of all attacks.
      clients: names of the clients.
    """
    leaks, top = _leaks(lines), foremost(lines)
    found = []
    if leaks and top is not None:
        found.append(_leak(sensitive, top, clients))
        rest = [line.attack for line in leaks if line is not top]
        if rest:
            found[0] += f" {', '.join(rest)} {'leak' if rest[1:] else 'leaks'}, too."
    else:
        found.append(_nothing(sensitive, lines))
    if any(doubts.STRONGEST in line.detail for line in lines):
        found.append(
            "The strongest attacks, which simulate the clients' training, were not run: "
            + _reasons(lines)
        )
    return found


def foremost(lines: Sequence[Line]) -> Line | None:
    """The strongest leak; without one the attack that comes nearest to it."""
    found = _leaks(lines) or [
        line
        for line in lines
        if line.total is not None and verdicts.is_judged(line.attack, line.setting)
    ]
    return max(found, key=_strength) if found else None


def _leaks(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.verdict == verdicts.LEAKS]


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

    def __str__(self) -> str:
        return f"What to do: {self.why} {self.command} {self.then}"


def what_to_do(
    flags: Mapping[str, Any],
    clients: int,
    training: LocalTraining,
    num_rounds: int | None = None,
    sees: View = "messages",
) -> Advice:
    """Which defenses to try, and the command that tries one on the same rows.

    Args:
      flags: of the audit.
      clients: how many were audited.
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
        "partition_clients": clients if owner and not flags.get("client") else None,
        **_model(flags.get("model")),
        "num_rounds": num_rounds,
        **trained,
        "adversary": None if sees == "messages" else sees,
        "defense": f"dp_sgd(clip=0.1|1|10, epsilon={EPSILON})",
    }
    told = (f"--{name}={value}" for name, value in rows.items() if value is not None)
    return Advice(
        "noise on every example's gradient (dp_sgd, fed_cdp) is the defense with a "
        "guarantee. This trains on the same rows with one and attacks it, beside its "
        "cost in accuracy, in a clone of the repository, with the path of the rows from "
        "there:",
        f"python -m experiments.aia {shlex.join(told)}",
        (
            ""
            if "learning_rate" in trained
            else "Run it with the learning rate of your training. "
        )
        + "Then record your own training with the defense, and audit that.",
    )


def _trained(training: LocalTraining) -> dict[str, str]:
    """How clients train by the flags of `experiments.aia`, without what is not known."""
    if training.algorithm == "fed_sgd":  # whose rate is the server's
        return {"algorithm": "fed_sgd"}
    rate, rows, falls = training.learning_rate, training.batch_size, _falls(training)
    rate = None if falls is None else rate  # of a schedule that has no flag
    optimiser = "momentum" if training.momentum else training.optimiser
    proximal = training.proximal if training.algorithm == "fed_prox" else None
    found = {
        "learning_rate": None if rate is None else f"{rate:g}",
        "learning_rate_decay": f"{falls:.6g}" if rate and falls != 1 else None,
        "batch_size": "none" if rows == 0 else rows,
        "local_epochs": None if training.steps else training.epochs,
        "local_steps": training.steps,
        "client_optimiser": optimiser if optimiser in ("momentum", "adam") else None,
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


def _strength(line: Line) -> tuple[bool, float]:
    """What speaks of the column first, then what is furthest: errors are small."""
    value = line.total.value if line.total else 0.0
    errs = line.metric in (ERROR.metric, DISTANCE.metric)
    return line.metric in (ACCURACY.metric, ERROR.metric), -value if errs else value


def _leak(sensitive: str, line: Line, clients) -> str:
    total = line.total
    assert total is not None
    if line.metric != ACCURACY.metric:
        return f"Messages leak: {line.attack} has a {_measure(line)} ({line.detail})."
    parts = [
        text.format(f"{total.references[name]:.1f} %")
        for name, text in _REFERENCES.items()
        if name in total.references
    ]
    parts.append(f"the most frequent value is right for {total.baseline:.1f} %")
    return (
        f"{who(line.setting)} names {sensitive} of {total.value:.1f} % "
        f"[{total.low:.1f}, {total.high:.1f}] of {whose(line.setting)} rows "
        f"({line.attack}). Without them: {'; '.join(parts)}. {_range(line, clients)}"
    ).strip()


def who(setting: str) -> str:
    """An adversary by the setting of its attack, as the beginning of a sentence."""
    view, _, number = setting.partition("_of_")
    return {
        "sum": f"Who sees only sums of {number or 'all'} clients' messages, as a server "
        "under secure aggregation does,",
        "models": "Who sees only the global models, as every client does,",
        "final": "Who has only the last global model",
    }.get(view, "Who sees a client's messages")


def whose(setting: str) -> str:
    """The rows that such an adversary speaks of."""
    return "the clients'" if setting.startswith(("sum", "models", "final")) else "its"


def _measure(line: Line) -> str:
    total = line.total
    assert total is not None
    names = {each.metric: each.text for each in (ERROR, DISTANCE)}
    text = names.get(line.metric, line.metric.replace("_", " "))
    return f"{text} of {total.value:.4g} where {total.baseline:.4g} needs no message"


def _range(line: Line, clients) -> str:
    """The clients with the least and the most."""
    if len(line.clients) < 2:
        return ""
    values = [each.value for each in line.clients]
    low, high = int(np.argmin(values)), int(np.argmax(values))
    if values[low] == values[high]:
        return f"Of each of the {len(values)} clients {values[low]:.1f} %."

    def one(at: int) -> str:
        return f"{values[at]:.1f} % of {clients[at]} ({line.clients[at].n} rows)"

    return f"From {one(low)} to {one(high)}."


def _nothing(sensitive: str, lines: Sequence[Line]) -> str:
    kinds = {line.verdict for line in lines}
    if MISFIT in kinds:
        return (
            f"No conclusion about {sensitive}: the messages do not fit these rows. They "
            "may belong to other people, or be encoded in another way than the model "
            "was trained on."
        )
    if UNLEARNT in kinds:
        return (
            f"No conclusion about {sensitive}: the model has hardly learnt anything "
            "from these rows."
        )
    if verdicts.PREDICTABLE in kinds:
        return (
            f"Much of {sensitive} can be predicted without anyone's messages; no attack "
            "that was run shows more than that."
        )
    return (
        f"No attack that was run shows a leak of {sensitive}. That is no proof: another "
        "attack may succeed."
    )


def _reasons(lines: Sequence[Line]) -> str:
    why = {line.attack: line.detail for line in lines}
    found = [
        f"{name}: {why[name]}" if name in why else f"{name} was not asked for"
        for name in doubts.SIMULATING
    ]
    return "; ".join(found) + "."
