"""Rebuilds a client's rows from her first message, where that is one gradient of few.

The attacker knows the targets and how many rows there are, and none of their columns.
He starts from standard normal rows, or with proxy rows from normal ones with their
means and deviations.
"""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks.inversion import Budget, invert, points, solvers, spaces
from fljax.auditing.evidence import Answers, Evidence, Rebuilt, Skipped, key

_INVERSION = 3  # stream of the seed


def rebuild(evidence: Evidence) -> Answers:
    """Rows of every client, as many as she has; NaN behind them."""
    why = _refusal(evidence)
    if why:
        return {"inversion": Skipped(why)}
    known, box = evidence.known, evidence.messages
    width = known.public.numeric.shape[-1] + evidence.candidates.shape[1]
    found = np.full((*known.y.shape, width), np.nan, np.float32)

    @jax.jit
    def attack(stream, params, observed, y):
        space = spaces.examples((len(y), width), _seed(evidence), y=y)
        return invert(
            stream,
            params,
            observed,
            points.gradient_of(evidence.loss_fn),
            spaces.as_features(space),
            solvers.whitened_lbfgs(),
            budget=_budget(evidence),
        ).x.numeric

    rate = np.float32(evidence.pace.learning_rate or 1)
    for client, rows in enumerate(evidence.sizes):
        row, slot = box.row[client, 0], box.slot[client, 0]
        params = jax.tree.map(lambda leaf, r=row: leaf[r], box.seen.params)
        gradient = jax.tree.map(
            lambda leaf, r=row, s=slot: leaf[r, s] / rate, box.seen.delta
        )
        stream = key(evidence.told.seed, _INVERSION, client)
        found[client, :rows] = attack(stream, params, gradient, known.y[client, :rows])
    return {"inversion": Rebuilt(found)}


def _refusal(evidence: Evidence) -> str:
    pace, most = evidence.pace, evidence.told.inversion_rows
    if pace.missing:
        return (
            f"needs {' and '.join(pace.missing)}: give --{' and --'.join(pace.missing)}"
        )
    sizes = evidence.sizes
    steps = pace.local_steps(sizes)
    if steps.max() > 1 or sizes.max() > most:
        return f"messages of {_span(steps, 'step')} over {_span(sizes, 'row')}"
    if pace.batch_size and pace.batch_size < sizes.max():
        return (
            f"one step over {pace.batch_size} of {_span(sizes, 'row')}, not known which"
        )
    if pace.optimiser != "sgd":
        return f"messages are gradients for plain SGD only, not {pace.optimiser}"
    return ""


def _span(values: np.ndarray, noun: str) -> str:
    low, high = int(values.min()), int(values.max())
    number = str(low) if low == high else f"{low} to {high}"
    return f"{number} {noun}{'' if high == 1 else 's'}"


def _seed(evidence: Evidence):
    proxy = evidence.proxy

    def seed(stream, shape):
        drawn = jax.random.normal(stream, shape)
        if proxy is None:
            return drawn
        mean, deviation = proxy.x.mean(axis=0), proxy.x.std(axis=0)
        return jnp.asarray(mean)[None] + drawn * jnp.asarray(deviation)[None]

    return seed


def _budget(evidence: Evidence) -> Budget:
    told = evidence.told
    count = told.inversion_iterations
    return Budget(
        num_iterations=count, starts=told.inversion_starts, record_every=count
    )
