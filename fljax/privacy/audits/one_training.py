"""One training with many canaries: what each observer can prove.

    federation = plant_many(method_of, loss_fn, tables, Canary("mislabelled"), 200)
    audit_once(federation, delta=1e-5).audited["messages"].epsilon

Each observer guesses the coins of the canaries from all that was seen (`coins`), and one
bound comes of it (Steinke, Nasr and Jagielski 2023).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fljax import federation as federation_lib
from fljax import rounds
from fljax.federation import Federation, Tables, Training
from fljax.privacy.audits import chances, coins, guesses, multi_run, statistics
from fljax.privacy.audits.coins import Exchange
from fljax.privacy.audits.crowd import Crowd
from fljax.privacy.audits.evidence import OBSERVERS, Observer
from fljax.privacy.audits.multi_run import Audit
from fljax.types import PyTree


def audit_once(
    federation: Federation,
    *,
    delta: float,
    confidence: float = 0.95,
    observers: Sequence[Observer] = OBSERVERS,
    numbers: PyTree = (),
    seed: int = 0,
) -> Audit:
    """Audits a private federation by one training.

    Args:
      federation: from `plant_many`.
      delta: in (0, 1), of both sides.
      confidence: of each lower bound.
      observers: who is asked.
      numbers: of the method, e.g. learning rate.
      seed: of the training.

    Raises:
      TypeError: for a federation without canaries.
      ValueError: for numbers out of range, or noise that is accounted for other batches
        than are drawn.
    """
    crowd, tables = federation.method, federation.tables
    if not isinstance(crowd, Crowd):
        raise TypeError("federation: expected one from privacy.plant_many")
    multi_run.check_observers(observers)
    statistics.check_numbers(delta, confidence)
    there = _there(crowd, tables)
    noise = crowd.method.defended(numbers).noise
    clients = range(len(np.asarray(tables.schedule.sizes)[0]) - 1)
    each = [crowd.canary._replace(client=client) for client in clients]
    upper = max(multi_run.accounted(noise, tables, one, delta) for one in each)
    told = jax.tree.map(lambda leaf: np.asarray(leaf)[None], numbers)
    training = Training.of_seeds(seed, numbers=told)
    seen = federation_lib.train(federation, training, evaluate=exchanged).evaluations
    exchange = jax.tree.map(lambda leaf: np.asarray(leaf[-1])[0], seen)
    scores = coins.scores(crowd, tables, Exchange(*exchange), numbers)
    audited: dict[Observer, statistics.Audited] = {
        observer: guesses.one_run(
            scores[observer][there],
            crowd.present[there],
            delta=delta,
            confidence=confidence,
        )
        for observer in observers
    }
    return Audit(crowd.canary, upper, audited, 1)


def _there(crowd: Crowd, tables: Tables) -> np.ndarray:
    """`[M]` canaries whose clients take part in some round: of others nothing is seen.

    Raises:
      ValueError: they are too few to tell anything.
    """
    there = chances.taking_part(tables)[crowd.owners(tables)]
    try:
        statistics.check_sides(np.asarray(crowd.present)[there], None)
    except ValueError as error:
        if there.all():
            raise
        gone = f"{(~there).sum()} canaries are of clients who take part in no round"
        raise ValueError(f"{error}; {gone}") from None
    return there


def exchanged(run: rounds.Run, training: Training, tables: Tables) -> Exchange:
    """`federation.Evaluate`: what was exchanged."""
    del training
    seen, last = run.transcript, run.server.params
    count = tables.schedule.sizes.shape[-1] - 1
    flat = jax.vmap(lambda tree: ravel_pytree(tree)[0])
    is_own = seen.client[:, :, None] == jnp.arange(count)[None, None]
    here, slot = is_own.any(axis=1), jnp.argmax(is_own, axis=1)[..., None]  # [R, C]
    own = jnp.take_along_axis(jax.vmap(flat)(seen.delta), slot, axis=1)
    own = jnp.where(here[..., None], own, 0)
    return Exchange(flat(seen.params), ravel_pytree(last)[0], own, here)
