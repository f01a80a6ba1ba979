"""How often audits of people who never took part show a leak, after real trainings.

    python -m experiments.benchmarks.false_alarms --audits=500

Each audit has a federation of its own: two clients train on drawn people, and their
messages are audited against as many others of the same population. Of each kind of
attack at most one audit in twenty may show a leak (`fljax.verdicts`).
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fljax
from experiments.benchmarks import harness
from fljax import verdicts
from fljax.driver.option import option, several
from fljax.types import Transcript

_ALLOWED = 1 / 20
_CLIENTS, _ROUNDS, _RATE = 2, 12, 0.1
_COLUMNS = ("age", "married", "height")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(harness.SmallFlags):
    """No prefix."""

    audits: int = option(500, "of each kind", min=1)
    kinds: tuple[str, ...] = several(
        ("attribute", "number", "labels", "rows"), "kinds of attacks"
    )


class _Kind(NamedTuple):
    """What is audited.

    Attributes:
      sensitive: the inferred column.
      target: what the model predicts.
      rows: of each client.
      attacks: names.
    """

    sensitive: str
    target: str
    rows: int
    attacks: tuple[str, ...]


_SIMULATING = ("model", "linear_inversion", "trajectory")
KINDS = {
    "attribute": _Kind("married", "y", 30, _SIMULATING),
    "number": _Kind("age", "y", 30, ("model", "linear_inversion")),
    "labels": _Kind("married", "level", 30, ("last_layer", "class_gradients")),
    "rows": _Kind("married", "y", 6, ("inversion",)),
}
_COLUMNS_SHOWN = {
    "kind": ("kind", ""), "audits": ("audits", "d"), "alarms": ("alarms", "d"),
    "percent": ("% of audits", ".1f"), "by_attack": ("by attack", ""),
    "seconds": ("s an audit", ".2f"),
}  # fmt: skip


def benchmark(flags: Flags) -> tuple[list[harness.Row], list[harness.Target]]:
    """Alarms of every kind, beside one in twenty with three standard errors."""
    audits = 2 if flags.smoke else flags.audits
    rows, targets = [], []
    for name in flags.kinds:
        begin = time.perf_counter()
        found = [set(leaks) for leaks in alarms(KINDS[name], audits, flags.seed)]
        count = sum(map(bool, found))
        by_attack = {a: sum(a in each for each in found) for a in KINDS[name].attacks}
        rows.append(
            {
                "benchmark": "false_alarms", "kind": name, "audits": audits,
                "alarms": count, "percent": 100 * count / audits,
                "by_attack": ", ".join(f"{k} {v}" for k, v in by_attack.items()),
                "seconds": (time.perf_counter() - begin) / audits,
            }
        )  # fmt: skip
        chance = 3 * np.sqrt(_ALLOWED * (1 - _ALLOWED) / audits)
        limit = float(_ALLOWED + chance)
        targets.append(harness.Target(name, count / audits, limit, at_least=False))
    return rows, targets


def alarms(kind: _Kind, audits: int, seed: int = 0) -> Iterator[list[str]]:
    """Names of the attacks that are said to leak, audit by audit."""
    for number in range(audits):
        rng = np.random.default_rng([seed, number])
        members, others = (_people(rng, kind.rows) for _ in range(2))
        outputs = 1 if kind.target == "y" else 3
        findings = fljax.audit(
            _train(rng, members, kind.target, outputs),
            others.drop(columns=_unread(kind)),
            target=kind.target, sensitive=kind.sensitive, client_column="client",
            attacks=kind.attacks, proxy=_proxy(rng, kind), batch_size=0,
            learning_rate=_RATE, local_epochs=1, optimiser="sgd", seed=number,
            trajectory_iterations=24, inversion_iterations=20, inversion_starts=1,
            task="multiclass" if outputs > 1 else "regression",
        )  # fmt: skip
        yield [x.attack for x in findings.lines if x.verdict == verdicts.LEAKS]


def _unread(kind: _Kind) -> list[str]:
    """The other target."""
    return ["level"] if kind.target == "y" else ["y"]


def _proxy(rng: np.random.Generator, kind: _Kind) -> pd.DataFrame:
    """The adversary's own people, without a client."""
    return _people(rng, 60).drop(columns=[*_unread(kind), "client"])


def _people(rng: np.random.Generator, size: int) -> pd.DataFrame:
    """Two clients' people; their columns depend on each other."""
    total = _CLIENTS * size
    age, height = rng.normal(size=(2, total)).round(3)
    married = (age + rng.normal(size=total) > 0).astype(int)
    y = (age + married - height + 0.5 * rng.normal(size=total)).round(3)
    level = np.digitize(y + 0.5 * rng.normal(size=total), [0.0, 1.0])
    level[:3] = range(3)  # everyone's file has every class
    columns = {"age": age, "married": married, "height": height, "y": y}
    clients = np.repeat(np.arange(_CLIENTS), size)
    return pd.DataFrame(columns | {"level": level, "client": clients})


def _train(
    rng: np.random.Generator, people: pd.DataFrame, target: str, outputs: int
) -> Transcript:
    """FedAvg of a linear model by full-batch steps, as its server sees it."""
    x = people[list(_COLUMNS)].to_numpy(float)
    y = people[target].to_numpy()[:, None]
    goal = y if outputs == 1 else np.eye(outputs)[y[:, 0]]
    slope: Callable[[np.ndarray], np.ndarray] = (
        (lambda out: 2 * out) if outputs == 1 else _softmax
    )
    kernel, bias = 0.5 * rng.normal(size=(3, outputs)), np.zeros(outputs)
    sent, gone = [], []
    for _ in range(_ROUNDS):
        deltas = []
        for client in range(_CLIENTS):
            mine = (people.client == client).to_numpy()
            error = slope(x[mine] @ kernel + bias) - (1 + (outputs == 1)) * goal[mine]
            deltas.append((_RATE * x[mine].T @ error / mine.sum(),
                           _RATE * error.mean(axis=0)))  # fmt: skip
        sent.append((kernel, bias))
        gone.append([np.stack(each) for each in zip(*deltas, strict=True)])
        kernel, bias = (
            a - d.mean(axis=0) for a, d in zip((kernel, bias), gone[-1], strict=True)
        )
    clients = np.tile(np.arange(_CLIENTS, dtype=np.int32), (_ROUNDS, 1))
    return Transcript(
        np.arange(_ROUNDS, dtype=np.int32), clients, _named(sent), _named(gone)
    )


def _softmax(out: np.ndarray) -> np.ndarray:
    weights = np.exp(out - out.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _named(rounds: list) -> dict[str, Any]:
    kernel, bias = (np.stack(each) for each in zip(*rounds, strict=True))
    return {"out": {"kernel": kernel, "bias": bias}}


if __name__ == "__main__":
    harness.main(benchmark, Flags, _COLUMNS_SHOWN)
