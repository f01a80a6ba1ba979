"""What is shown to leak from a recorded training, and what epsilon it had."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import fljax
from experiments.benchmarks.peers.rows import People
from experiments.benchmarks.peers.training import Plan, Shipped
from fljax import privacy
from fljax.auditing.lines import Line

ATTACKS = ("model", "grad", "linear_inversion", "trajectory")
KNOWS = "trajectory, knowing the defense"
DELTA = 1e-5
_LEAST = 1.0  # epsilon


class Effort(NamedTuple):
    """How hard attacks and audits look; options of `fljax.audit`, and `draws`."""

    grad_rounds: tuple[int, ...] = (1, 10, 40)
    trajectory_iterations: int = 240
    draws: int = 2000


def attack(
    stem: str, people: People, plan: Plan, shipped: Shipped, effort: Effort
) -> dict[str, Line]:
    """The audit's lines by attack, baselines among them.

    Attacks that do not know the defense come first; one that does is `KNOWS`, where the
    library's vocabulary has the defense.
    """
    roles = people.target, people.sensitive, "client"
    inputs = [name for name in people.frame if name not in roles]
    options = effort._asdict()
    del options["draws"]

    def audit(attacks: Sequence[str], **more):
        return fljax.audit(
            stem, people.frame, target=people.target, sensitive=people.sensitive,
            model=f"mlp:{plan.hidden}", client_column="client", numeric=inputs,
            task=people.task, attacks=attacks, seed=plan.seed, **options, **more,
        )  # fmt: skip

    found = {line.attack: line for line in audit(ATTACKS).lines}
    if shipped.simulated not in ("", "none"):
        told = {"defense": shipped.simulated, "delta": shipped.delta}
        lines = audit(("trajectory",), **told).lines
        found[KNOWS] = next(line for line in lines if line.attack == "trajectory")
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
