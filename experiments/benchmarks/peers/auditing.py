"""What is shown to leak from a recorded training, and what epsilon it had."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import fljax
from experiments.benchmarks.peers import training
from experiments.benchmarks.peers.rows import People
from experiments.benchmarks.peers.training import Plan, Shipped
from fljax import privacy, transcript
from fljax.auditing.lines import Line
from fljax.types import Model, Transcript

ATTACKS = ("model", "grad", "linear_inversion", "trajectory")
KNOWS = "trajectory, knowing the defense"
DELTA = 1e-5
_LEAST = 1.0  # epsilon


class Effort(NamedTuple):
    """How hard attacks look, and how often an audit draws."""

    grad_rounds: tuple[int, ...] = (1, 10, 40)
    trajectory_iterations: int = 240
    draws: int = 2000

    @property
    def options(self) -> dict[str, Any]:
        """Of `fljax.audit`."""
        return {k: v for k, v in self._asdict().items() if k != "draws"}


def attack(
    stem: str, people: People, plan: Plan, shipped: Shipped, effort: Effort
) -> dict[str, Line]:
    """The audit's lines by attack, baselines among them.

    Attacks that do not know the defense come first; one that does is `KNOWS`, where the
    library's vocabulary has the defense.
    """
    roles = people.target, people.sensitive, "client"
    inputs = [name for name in people.frame if name not in roles]

    def audit(attacks: Sequence[str], seen: Any = stem, **more):
        options = {"model": f"mlp:{plan.hidden}", **effort.options, **more}
        findings = fljax.audit(
            seen, people.frame, target=people.target, sensitive=people.sensitive,
            client_column="client", numeric=inputs, task=people.task, attacks=attacks,
            seed=plan.seed, **options,
        )  # fmt: skip
        return {line.attack: line for line in findings.lines}

    found, last = audit(ATTACKS), ATTACKS[-1:]
    if shipped.fixed:
        seen, model = _without(stem, shipped.fixed)
        found[KNOWS] = audit(last, seen, model=model, **training.about(plan))[last[0]]
    elif shipped.simulated not in ("", "none"):
        told = {"defense": shipped.simulated, "delta": shipped.delta}
        found[KNOWS] = audit(last, **told)[last[0]]
    return found


def accounted(people: People, plan: Plan, shipped: Shipped) -> float | None:
    """Epsilon of the whole training by `fljax.privacy`; None where no noise is known."""
    if shipped.noise is None:
        return None
    steps = plan.rounds * plan.steps(len(people.clients[0].y))
    releases = privacy.Releases(steps, plan.rounds).of(shipped.noise.unit)
    promised = privacy.guarantee(shipped.noise, releases, DELTA, rounds=plan.rounds)
    return float(np.max(promised.epsilon_pld))


class OneRelease(NamedTuple):
    """One noisy sum or message: epsilon by its sigma, and at least, from outputs."""

    accounted: float
    audited: float


def one_release(shipped: Shipped, draws: int) -> OneRelease | None:
    """What is proven of a single release.

    Args:
      shipped: of a small model, whose noise can be learned from so many draws.
      draws: with and without a canary.

    Returns:
      None where nothing is promised, or so little that no such audit can tell.
    """
    if shipped.release is None or shipped.noise is None:
        return None
    alone = shipped.noise._replace(sampling_rate=1.0, sampling="all")
    promised = float(privacy.guarantee(alone, 1, DELTA).epsilon_pld[0])
    if promised < _LEAST:
        return None
    found = privacy.audit_step(shipped.release, delta=DELTA, draws=draws, traced=False)
    return OneRelease(promised, found.audited.epsilon)


def _without(stem: str, fixed: Sequence[str]) -> tuple[Transcript, Model]:
    """What moved, and the model with constants in place of what never does."""
    seen, _ = transcript.load(stem)
    constant = {name: jnp.asarray(seen.params[name][0]) for name in fixed}
    params, delta = (
        {name: array for name, array in tree.items() if name not in fixed}
        for tree in (seen.params, seen.delta)
    )
    first = {name: array[0] for name, array in params.items()}

    def apply(moving, x):
        return training.output({**constant, **moving}, x.numeric)

    return seen._replace(params=params, delta=delta), Model(lambda _: first, apply)
