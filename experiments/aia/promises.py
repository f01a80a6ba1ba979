"""What the defense of a run promises, read from the object that adds the noise."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments.aia import defense, shields
from experiments.aia.problem import Problem, Shield
from experiments.aia.scoring import Labels
from experiments.aia.settings import DefenseConfig
from fljax import privacy
from fljax.results import Row
from fljax.types import NoiseSpec

_UNCHARGED = "what the encoding learns from the training rows is not charged"
_CHOSEN = "nor is the choice among several clips, made on the held-out rows"
_ATTACKED = (
    "nor is the active server's tuning, whose trials all meet the same noise, nor "
    "isolation beside Adam: each reported attack is a world of its own"
)
# Unit of a guarantee -> what the names of its numbers begin with.
_PREFIX = {"record": "", "client": "client_"}


def rows(labels: Labels, problem: Problem, config: DefenseConfig) -> list[Row]:
    """Noise, clip and both epsilons of every client; of all clients the largest.

    Those of a guarantee of whole clients begin with `client_`. Without any guarantee
    epsilon is inf.
    """
    found = []
    for seed in range(len(labels.seeds)):
        sizes = problem.schedule.sizes[seed, :-1]
        for metric, numbers in _numbers(problem.shield, config, seed):
            values = np.broadcast_to(numbers, sizes.shape)
            each = [*zip(range(len(sizes)), values, sizes, strict=True)]
            each.append(("all", values.max(), sizes.sum()))
            for client, value, count in each:
                found.append(
                    labels.row(seed, "none", "defense", client, metric, value, count)
                )
    return found


def describe(
    problem: Problem, config: DefenseConfig, loss: np.ndarray, *, active: bool
) -> dict[str, Any]:
    """What the manifest says of the defense.

    Args:
      problem: with the chosen clips.
      config: which defense.
      loss: from `defense.choose_clip`.
      active: whether there is an active server.
    """
    shield, clips = problem.shield, shields.clips(config)
    several = clips is not None and len(clips) > 1
    uncharged = [_UNCHARGED, *([_CHOSEN] * several), *([_ATTACKED] * active)]
    held_out = np.where(np.isfinite(loss), loss, None).tolist()
    said = {
        "name": config.name,
        "clip": None if clips is None else shield.numbers.clip.tolist(),
        "held_out_loss": held_out if several else None,
        "sampling_rate": shield.numbers.sampling_rate.tolist(),
        "steps": shield.steps.tolist(),
        "delta": config.delta,
    }
    spent = [dict(_spent(shield, config, seed)) for seed in range(len(shield.steps))]
    for unit in spent[0]:
        prefix = _PREFIX[unit]
        each = [by_unit[unit] for by_unit in spent]
        said |= {
            f"{prefix}noise_multiplier": [_plain(s.noise_multiplier) for s, _ in each],
            f"{prefix}epsilon_rdp": [_plain(g.epsilon_rdp) for _, g in each],
            f"{prefix}epsilon_pld": [_plain(g.epsilon_pld) for _, g in each],
            f"{prefix}assumption": [
                "; ".join([g.assumption, *uncharged]) for _, g in each
            ],
        }
    if not spent[0]:
        said["no_guarantee"] = shields.unpromised(config)
    return said


def _numbers(
    shield: Shield, config: DefenseConfig, seed: int
) -> Iterator[tuple[str, Any]]:
    """Metric and number or `[C]`."""
    spent, numbers = _spent(shield, config, seed), defense.numbers_of(shield, seed)
    for unit, (spec, guarantee) in spent:
        prefix = _PREFIX[unit]
        yield f"{prefix}epsilon_rdp", guarantee.epsilon_rdp
        yield f"{prefix}epsilon_pld", guarantee.epsilon_pld
        yield f"{prefix}noise_multiplier", spec.noise_multiplier
        if shields.chosen(config) != ("dp_sgd",):  # whose sigma is the multiplier
            sigma = {"record": numbers.step_noise, "client": numbers.message_noise}
            yield f"{prefix}sigma", sigma[unit]
    if not spent:
        yield "epsilon_rdp", np.inf
        yield "epsilon_pld", np.inf
    if shields.clips(config) is not None:
        yield "clip", numbers.clip


def _spent(
    shield: Shield, config: DefenseConfig, seed: int
) -> list[tuple[str, tuple[NoiseSpec, privacy.Guarantee]]]:
    """Unit -> what adds noise, and what is promised."""
    made = shield.build(defense.numbers_of(shield, seed))
    steps = {"record": shield.steps[seed], "client": shield.rounds}
    return [
        (
            spec.unit,
            (
                spec,
                privacy.guarantee(
                    spec, steps[spec.unit], config.delta, rounds=shield.rounds
                ),
            ),
        )
        for spec in made.noise
    ]


def _plain(values: Any) -> list[float | str]:
    """JSON has no number for what is infinite."""
    flat = np.atleast_1d(values).tolist()
    return [each if np.isfinite(each) else str(each) for each in flat]
