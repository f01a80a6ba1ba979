"""What the defense of a run promises, read from the object that adds the noise."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments.epsilons import PREFIX
from experiments.tabular.defense_config import BoundDefense
from experiments.tabular.problem import Problem
from fljax import privacy
from fljax.defenses import specs
from fljax.results import Labels, Row

_UNCHARGED = "what the encoding learns from the training rows is not charged"
_CHOSEN = "nor is the choice among several clips, made on the held-out rows"
_ATTACKED = (
    "nor is the active server's tuning, whose trials all meet the same noise, nor "
    "isolation beside Adam: each reported attack is a world of its own"
)
SETTING = "defense"  # of all rows of this


def rows(labels: Labels, problem: Problem, seeds: Sequence[int]) -> list[Row]:
    """Noise, clip and both epsilons of every client; of all clients the largest.

    Those of a guarantee of whole clients begin with `client_`. Without any guarantee
    epsilon is inf.
    """
    epsilons = []
    for at, seed in enumerate(seeds):
        sizes = problem.schedule.sizes[at, :-1]
        for metric, numbers in _numbers(problem.bound_defense, at):
            values = np.broadcast_to(numbers, sizes.shape)
            each = [*zip(range(len(sizes)), values, sizes, strict=True)]
            each.append(("all", values.max(), sizes.sum()))
            for client, value, count in each:
                epsilons.append(
                    labels.row("none", SETTING, seed, metric, value, count, client)
                )
    return epsilons


def describe(
    bound: BoundDefense, loss: np.ndarray, *, active: bool, unbounded: str = ""
) -> dict[str, Any]:
    """What the manifest says of the defense.

    Args:
      bound: with the chosen clips.
      loss: from `defense.choose_clip`.
      active: whether there is an active server.
      unbounded: why there is no bound on what any adversary can have, if there is none.
    """
    several = loss.shape[1] > 1
    uncharged = [_UNCHARGED, *([_CHOSEN] * several), *([_ATTACKED] * active)]
    held_out = np.where(np.isfinite(loss), loss, None).tolist()
    clips = [part["clip"].tolist() for part in bound.parts if "clip" in part]
    statement = {
        "name": str(bound.spec),
        "clip": clips[0] if len(clips) == 1 else clips or None,
        "held_out_loss": held_out if several else None,
        "sampling_rate": bound.setting.sampling_rate.tolist(),
        "steps": bound.steps.tolist(),
        "delta": bound.delta,
    }
    if not isinstance(bound.rounds, int):
        statement["rounds_within_budget"] = bound.rounds.tolist()
    spent = [_spent(bound, seed) for seed in range(len(bound.steps))]
    for prefix in spent[0]:
        each = [of_seed[prefix] for of_seed in spent]
        statement |= {
            f"{prefix}noise_multiplier": [_by_client(p, bound) for p in each],
            f"{prefix}epsilon_rdp": [_plain(p.guarantee.epsilon_rdp) for p in each],
            f"{prefix}epsilon_pld": [_plain(p.guarantee.epsilon_pld) for p in each],
            f"{prefix}assumption": [
                "; ".join([p.guarantee.assumption, *uncharged]) for p in each
            ],
        }
    if not spent[0]:
        statement["no_guarantee"] = specs.unpromised(bound.spec)
    if unknown := specs.without_effects(bound.spec):
        statement["attacks_do_not_know"] = unknown
    if unbounded:
        statement["no_accuracy_ceiling"] = unbounded
    return statement


def _numbers(bound: BoundDefense, seed: int) -> Iterator[tuple[str, Any]]:
    """Metric and number or `[C]`."""
    spent = _spent(bound, seed)
    for prefix, promise in spent.items():
        yield f"{prefix}epsilon_rdp", promise.guarantee.epsilon_rdp
        yield f"{prefix}epsilon_pld", promise.guarantee.epsilon_pld
        yield f"{prefix}noise_multiplier", promise.noise.noise_multiplier
    if not spent:
        yield "epsilon_rdp", np.inf
        yield "epsilon_pld", np.inf
    several = sum("clip" in part for part in bound.parts) > 1
    prefixes = iter(spent)
    for name, part in zip(bound.spec.names, bound.parts, strict=True):
        prefix = next(prefixes) if "sigma" in part else ""
        if "sigma" in part and name != "dp_sgd":  # whose sigma is the multiplier
            yield f"{prefix}sigma", part["sigma"][seed]
        if "clip" in part:
            yield f"{prefix if several else ''}clip", part["clip"][seed]


def _spent(bound: BoundDefense, seed: int) -> dict[str, privacy.Promise]:
    """What each kind of noise promises, by what the names of its numbers begin with."""
    made = bound.build(bound.of_seed(seed))
    by_prefix: dict[str, privacy.Promise] = {}
    for promise in privacy.promises(made, bound.releases(seed), bound.delta):
        prefix = PREFIX[promise.noise.unit]
        by_prefix[f"{prefix}second_" if prefix in by_prefix else prefix] = promise
    return by_prefix


def _by_client(promise: privacy.Promise, bound: BoundDefense) -> list[float | str]:
    """One multiplier per client where it is of their records, else a single one."""
    multiplier = promise.noise.noise_multiplier
    if promise.noise.unit == "record":
        multiplier = np.broadcast_to(multiplier, bound.steps.shape[1:])
    return _plain(multiplier)


def _plain(values: Any) -> list[float | str]:
    """JSON has no number for what is infinite."""
    flat = np.atleast_1d(values).tolist()
    return [each if np.isfinite(each) else str(each) for each in flat]
