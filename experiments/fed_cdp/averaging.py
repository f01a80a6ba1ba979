"""The next model of a federation: the mean of those returned, or as published code has it.

The published code of Wei et al. (2021) divides the sum of the K_t models that come back by
K_t - 1: every round multiplies the weights by K_t / (K_t - 1), 2.7 times in a hundred
rounds of a hundred clients, 38,000 times with ten. Noise of a fixed size then fades beside
the weights. It is the paper's reading of its own algorithm that is measured so, no advice.
"""

import jax
import optax

from fljax.driver.config import ConfigError


def server(divisor: str, per_round: int) -> optax.GradientTransformation:
    """Makes the next model of the mean of `sent - returned`.

    Args:
      divisor: `participants` or `one_less`, of the sum of returned models.
      per_round: K_t, participants of a round.

    Raises:
      ConfigError: one less than one participant.
    """
    if divisor == "participants":
        return optax.sgd(1.0)
    if per_round < 2:
        raise ConfigError(
            "--divisor=one_less: expected at least 2 clients in a round, got "
            f"{per_round} (--clients, --percent)"
        )
    return optax.GradientTransformation(
        lambda _: optax.EmptyState(), _one_less(per_round / (per_round - 1))
    )


def _one_less(grown: float):
    def update(mean, state, sent):
        """Of models that travel with a count: it is a mean, and stays one."""
        change = jax.tree.map(
            lambda w, delta: (grown - 1) * w - grown * delta, sent.params, mean.params
        )
        return mean._replace(params=change, dropped=-mean.dropped), state

    return update
