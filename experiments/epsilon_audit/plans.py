"""The audits of a run, each checked before the first training: canary, noise, what to do."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from experiments.epsilon_audit import federation
from experiments.epsilon_audit.federation import Loaded, Numbers
from experiments.epsilon_audit.settings import Planted, Settings
from fljax import privacy
from fljax.driver.config import ConfigError
from fljax.privacy.audits import Audit, Canary, statistics
from fljax.privacy.audits.multi_run import Keep, accounted

Audited = Callable[[float, Keep, Callable[[int], None]], Audit]
# (noise multiplier, keeps blocks, told how many trainings are done) -> both sides


class Plan(NamedTuple):
    """The audit of one canary and budget.

    Attributes:
      name: of the canary, as its flag says.
      budget: epsilon that the noise keeps.
      noise: multiplier.
      audited: makes the audit.
    """

    name: Planted
    budget: float
    noise: float
    audited: Audited


def plans(settings: Settings, loaded: Loaded) -> Iterator[Plan]:
    """All that is asked for; audits of a canary share their programs.

    Raises:
      ConfigError: for what cannot be audited, naming the flag.
    """
    run = settings.run
    for name in run.canaries:
        unit = federation.planted(loaded, name)
        audited = (_of_many if run.mode == "many" else _of_one)(settings, loaded, unit)
        for budget in run.epsilons:
            noise = federation.noise_for(settings, loaded, unit, budget)
            _check(settings, loaded, unit, name, budget, noise)
            yield Plan(name, budget, noise, audited)


def _check(settings, loaded, unit: Canary, name: Planted, budget, noise) -> None:
    """Refuses a canary of which nothing is accounted, so that nothing can be shown."""
    run = settings.run
    method = federation.method_of(settings, loaded, unit)(loaded.loss_fn)
    spec = method.defended(Numbers(np.float32(noise))).noise
    clients = [unit.client] if run.mode == "many" else range(run.clients)
    each = (unit._replace(client=client) for client in clients)
    if max(accounted(spec, loaded.tables, one, run.delta) for one in each) > 0:
        return
    raise ConfigError(
        f"--delta: at {run.delta:g} the epsilon of a canary {name!r} is 0 under the noise of "
        f"--epsilons={budget:g}, which leaves nothing to audit; expected a smaller delta"
    )


def _of_many(settings: Settings, loaded: Loaded, unit: Canary) -> Audited:
    """Audits of a canary by many trainings, which share their programs."""
    run = settings.run
    method = federation.method_of(settings, loaded, unit)
    planted = privacy.plant(method, loaded.loss_fn, loaded.tables, unit, seed=run.seed)

    def audited(noise: float, keep: Keep, progress: Callable[[int], None]) -> Audit:
        return privacy.audit(
            planted,
            trainings=run.trainings,
            delta=run.delta,
            confidence=run.confidence,
            observers=run.observers,
            numbers=Numbers(np.float32(noise)),
            seed=run.seed,
            keep=keep,
            progress=progress,
        )

    return audited


def _of_one(settings: Settings, loaded: Loaded, unit: Canary) -> Audited:
    """Audits by one training with many such canaries."""
    run = settings.run
    method = federation.method_of(settings, loaded, unit)
    given = loaded.loss_fn, loaded.tables, unit, run.planted
    try:
        planted = privacy.plant_many(method, *given, seed=run.seed)
    except ValueError as error:
        raise ConfigError(f"--planted: {error}") from error
    coins = planted.method.present
    there = int(coins.sum())
    if min(there, len(coins) - there) < statistics.FEWEST:
        raise ConfigError(
            f"--planted: expected coins to let {statistics.FEWEST} canaries in and as "
            f"many out, got {there} of {len(coins)} in; more of them, or another --seed"
        )

    def audited(noise: float, keep: Keep, progress: Callable[[int], None]) -> Audit:
        del keep  # one training is soon done again
        audit = privacy.audit_once(
            planted,
            delta=run.delta,
            confidence=run.confidence,
            observers=run.observers,
            numbers=Numbers(np.float32(noise)),
            seed=run.seed,
        )
        progress(1)
        return audit

    return audited
