"""Propositions 1 and 2 of Wei et al. (2021), measured.

Proposition 1: a row of a random client is of a class as often as a row of the data. The
paper concludes that the rows of one step, of K_t clients, are a sample of the data, which
speaks of the rows together: `sampling` measures both.

Proposition 2 (eq. 5 to 8): noise on a model that is no longer than s(x) / L_v leaves the
class of x as it was. s is the margin of the label over the next class, L_v the largest norm
of its slope over all x. Here norms are Euclidean. What the paper calls a loss g_j must be
larger for the likelier class; it is taken as the logarithm of its probability, so that a
margin is a difference of logits. L_v is over validation rows, of the model that is there:
the paper's formula has no other.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.fed_cdp import clients, methods
from experiments.fed_cdp.published import FINAL
from fljax import federation
from fljax.defenses import noise
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Spec
from fljax.federation import Tables, Training
from fljax.results import Labels, Row
from fljax.types import Array, Batch, Model

BOUND, TURNED = "noise_bound", "turned_within_bound_percent"
STEP, NOISY = "noise_of_a_step", "noisy_accuracy_percent"
MULTIPLES = (1, 10, 100, 1000)
_TRIALS = 1000  # steps that are drawn
_BATCH = 100  # rows whose slopes are held together
_KEY = 11
_ROUNDING = 1e-4  # of a margin: the steepest row ends at zero


class Tolerance(NamedTuple):
    """What noise ONE model bears, by Proposition 2 and as measured.

    All but `lipschitz` and `step` are not a number where the first is not finite or no
    row is named rightly.

    Attributes:
      margin: [] median of s over rows whose class is named rightly.
      lipschitz: [] L_v.
      bound: [] `margin / lipschitz`, the length of noise that the proposition allows.
      turned: [] share of those rows that lose their class where noise as long as each
        one's own bound goes down the slope of its margin; none, says the proposition.
        Other directions may be worse, so that it is a lower bound.
      accuracy: `[len(MULTIPLES)]` with one draw of Gaussian noise, brought to so many
        times the length of `bound`.
      step: [] length of the noise that the defense adds to a model in one local step of
        the last round; not a number where it adds its noise elsewhere.
    """

    margin: Array
    lipschitz: Array
    bound: Array
    turned: Array
    accuracy: Array
    step: Array


class Tolerated(NamedTuple):
    """Measures ONE model after its last round, on validation rows."""

    model: Model
    white: int | None
    defended: Setting
    spec: Spec

    def __call__(self, run, training: Training, tables: Tables) -> Tolerance:
        params, pool = run.server.params.params, tables.pool
        key = jax.random.fold_in(jax.random.key(training.seed), _KEY)
        noise_key, *step_keys = jax.random.split(key, 3)

        def margin(params, position):
            outputs = self.model.apply(params, self._inputs(pool, position))
            label = pool.labels[position]
            others = jnp.where(jnp.arange(len(outputs)) == label, -jnp.inf, outputs)
            ahead = outputs[label] - jnp.max(others)
            return jnp.where(jnp.isfinite(outputs).all(), ahead, jnp.nan)

        def each(fun):
            return jax.lax.map(fun, pool.validation, batch_size=_BATCH)

        def steepness(position):
            value, slope = jax.value_and_grad(margin)(params, position)
            return value, optax.tree.norm(slope)

        margins, norms = each(steepness)
        right, lipschitz = margins > 0, jnp.max(norms)
        sound = jnp.isfinite(lipschitz) & (lipschitz > 0)
        middle = jnp.nanmedian(jnp.where(right & sound, margins, jnp.nan))

        def worst(position):
            value, slope = jax.value_and_grad(margin)(params, position)
            length = value / (lipschitz * optax.tree.norm(slope))
            moved = jax.tree.map(lambda w, g: w - length * g, params, slope)
            return margin(moved, position) / value

        drawn = noise.like(noise_key, params, 1.0)

        def accuracy(multiple):
            length = multiple * middle / (lipschitz * optax.tree.norm(drawn))
            moved = jax.tree.map(lambda w, n: w + length * n, params, drawn)
            found = jnp.mean(each(lambda position: margin(moved, position)) > 0)
            return jnp.where(jnp.isfinite(middle), found, jnp.nan)

        turned = jnp.sum(right & (each(worst) < -_ROUNDING)) / jnp.sum(right)
        return Tolerance(
            middle,
            lipschitz,
            middle / lipschitz,
            jnp.where(jnp.isfinite(middle), turned, jnp.nan),
            jax.lax.map(accuracy, jnp.array(MULTIPLES, jnp.float32)),
            self._step(step_keys, params, training, tables),
        )

    def _step(self, keys, params, training: Training, tables: Tables) -> jax.Array:
        """Two draws on one batch differ by the noise of both."""
        built = methods.defense(self.defended, self.spec, training.numbers)
        if built.gradient is None:
            elsewhere = any(
                does is None or (does.noise and does.deviation != 0)
                for does in (part.effects for part in self.spec.parts)
            )
            return jnp.where(elsewhere, jnp.nan, 0.0)
        rows, schedule = federation.of(tables, training)
        first = jax.tree.map(lambda leaf: leaf[tables.pool.probe[0]], rows)
        batch = Batch(
            self._inputs(tables.pool, first.x),
            first.y,
            jnp.ones(len(first.y), bool),
            jnp.int32(0),
            jnp.int32(schedule.num_rounds - 1),
        )
        one, other = (built.gradient(key, params, batch)[0] for key in keys)
        apart = optax.tree.norm(jax.tree.map(jnp.subtract, one, other))
        return training.numbers.rate * apart / jnp.sqrt(2.0)

    def _inputs(self, pool, positions):
        return clients.look_up(pool.x, self.white, positions)


def rows(
    labels: Labels, method: str, seed: int, found: Tolerance, count: int
) -> list[Row]:
    """The numbers of one model; accuracies stand under how much noise it was given.

    Args:
      labels: of its defense.
      method: its name.
      seed: of its training.
      found: NumPy leaves.
      count: validation rows.
    """
    numbers = {
        "margin": found.margin,
        "lipschitz": found.lipschitz,
        BOUND: found.bound,
        TURNED: 100 * found.turned,
        STEP: found.step,
    }
    told = [(FINAL, metric, value) for metric, value in numbers.items()]
    told += [
        (f"noise of {multiple} bounds", NOISY, 100 * value)
        for multiple, value in zip(MULTIPLES, found.accuracy, strict=True)
    ]
    return [
        labels.row(method, setting, seed, metric, value, count)
        for setting, metric, value in told
    ]


def sampling(
    rng: np.random.Generator,
    owned: np.ndarray,
    everyone: np.ndarray,
    per_round: int,
    batch_size: int,
) -> Mapping[tuple[str, str], float]:
    """How far classes that are drawn are from those of the data, in total variation.

    In a step each of K_t different clients has the same one of its batches, as with fixed
    batches.

    Args:
      rng: of the draws.
      owned: `[K, N_i]` classes of the clients' rows, in their order.
      everyone: `[N]` classes of all rows that clients may hold.
      per_round: K_t.
      batch_size: B, at most N_i.

    Returns:
      `(who draws, what) -> distance`: of one row the exact one, of the rows of one step
      the mean over many.
    """
    count = int(max(owned.max(), everyone.max())) + 1

    def shares(labels):
        return np.bincount(labels.ravel(), minlength=count) / labels.size

    truth = shares(everyone)

    def distance(labels) -> float:
        return float(np.abs(shares(labels) - truth).sum() / 2)

    def of_clients() -> np.ndarray:
        chosen = rng.choice(len(owned), per_round, replace=False)
        first = batch_size * rng.integers(owned.shape[1] // batch_size)
        return owned[chosen, first : first + batch_size]

    def of_rows() -> np.ndarray:
        return rng.choice(everyone, per_round * batch_size)

    def mean(draw: Callable[[], np.ndarray]) -> float:
        return float(np.mean([distance(draw()) for _ in range(_TRIALS)]))

    return {
        ("client_sampling", "one row"): distance(owned),
        ("client_sampling", "rows of a step"): mean(of_clients),
        ("row_sampling", "rows of a step"): mean(of_rows),
    }
