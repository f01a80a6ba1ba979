"""Attacks that infer the sensitive column. None is given it, only `Evidence`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from fljax import losses
from fljax.attacks import attribute, trajectory
from fljax.attacks.attribute import gradient
from fljax.attacks.reconstruction import least_squares
from fljax.auditing.evidence import (
    Answer,
    Answers,
    Evidence,
    Guess,
    Skipped,
    key,
    over_clients,
)
from fljax.types import Batch, Known, Params

_GRADIENT, _TRAJECTORY = 0, 1  # streams of the seed


def model(evidence: Evidence) -> Answers:
    """Equation 3, with the last model that the client returned and was sent."""

    def one(number, exchange, known):
        del number
        first, sent = (
            jax.tree.map(lambda leaf, at=at: leaf[at], exchange.params)
            for at in (0, -1)
        )
        back = jax.tree.map(lambda leaf, d: leaf - d[-1], sent, exchange.delta)
        last = back, sent
        before, *after = (_loss(evidence, each, known) for each in (first, *last))
        guessed = tuple(_fit(evidence, each, known) for each in last)
        return guessed, jnp.minimum(*after) / before

    (returned, sent), ratio = over_clients(one, evidence)
    said = {"loss_ratio": ratio}  # of the better one to the first model
    return {"model": Guess(returned, said), "model_global": Guess(sent, said)}


def grad(evidence: Evidence) -> Answers:
    """Equation 2 over a grid, of which the highest cosine similarity chooses."""
    if evidence.continuous:
        return {"grad": Skipped("the sensitive column is a number, not a category")}
    told = evidence.told
    rates = jnp.asarray(told.grad_learning_rates, jnp.float32)
    counts = jnp.asarray(sorted(set(told.grad_rounds)), jnp.int32)

    def one(number, exchange, known):
        available = len(jax.tree.leaves(exchange)[0])

        def attack(setting):
            rate, count = setting
            # The same draws for every setting: settings differ, luck does not.
            found = gradient.gradient_based(
                key(told.seed, _GRADIENT, number),
                evidence.loss_fn,
                exchange,
                known,
                jnp.asarray(evidence.candidates),
                num_rounds=jnp.minimum(count, available),
                optimiser=optax.sgd(rate),
                num_iterations=told.grad_iterations,
            )
            return found.index, found.dissimilarity

        settings = jnp.meshgrid(rates, counts, indexing="ij")
        index, distance = jax.lax.map(attack, [leaf.ravel() for leaf in settings])
        best = jnp.argmin(jnp.where(jnp.isnan(distance), jnp.inf, distance))
        return index[best], distance[best]

    index, distance = over_clients(one, evidence)
    return {"grad": Guess(index, {"cosine": 1 - distance})}


def trajectory_matching(evidence: Evidence, *, first_order: bool) -> Answers:
    """Trajectory matching, or its first order, linear inversion."""
    name = "linear_inversion" if first_order else "trajectory"
    why = _cannot_simulate(evidence)
    if why:
        return {name: Skipped(why)}
    told, pace = evidence.told, evidence.pace
    steps = pace.local_steps(evidence.sizes)
    settings = trajectory.Settings(
        path_steps=min(int(steps.max()), told.path_steps * (pace.epochs or 1)),
        iterations=told.trajectory_iterations,
        first_order=first_order,
    )

    def one(number, exchange, known, scale):
        found = trajectory.trajectory_matching(
            key(told.seed, _TRAJECTORY, number),
            evidence.loss_fn,
            exchange,
            known,
            jnp.asarray(evidence.candidates),
            scale=scale,
            continuous=evidence.continuous,
            settings=settings,
        )
        value = found.value[:, 0] if evidence.continuous else found.index
        return value, found.misfit

    scales = np.asarray((pace.learning_rate or 0.0) * steps, np.float32)
    value, misfit = over_clients(one, evidence, scales)
    return {name: Guess(value, {"misfit": misfit})}


def reconstruction(evidence: Evidence) -> Answers:
    """Algorithm 2: a least-squares client's own optimum, and equation 3 with it."""
    return {"reconstruct": _reconstruct(evidence)}


def _reconstruct(evidence: Evidence) -> Answer:
    if not evidence.linear or evidence.task != "regression":
        return Skipped("needs --model=linear and a regression target")
    box = evidence.messages
    size = sum(leaf[0].size for leaf in jax.tree.leaves(box.seen.params))
    if box.count.min() <= size:
        return Skipped(
            f"needs {size + 1} messages of each client, got {box.count.min()}"
        )
    found = [_optimum(evidence, client) for client in range(len(box.count))]
    estimates = np.array([each.estimate for each in found], np.float32)

    def one(number, exchange, known, estimate):
        del number
        shape = jax.tree.map(lambda leaf: leaf[0], exchange.params)
        params = jax.flatten_util.ravel_pytree(shape)[1](estimate)
        return _fit(evidence, params, known)

    said = {
        "rank": np.array([float(each.rank) for each in found]),
        "determined": np.array([float(each.determined) for each in found]),
    }
    return Guess(over_clients(one, evidence, estimates), said)


def _optimum(evidence: Evidence, client: int) -> least_squares.Reconstruction:
    # Messages that travelled as float32 carry its rounding.
    rcond = None if evidence.messages.double else 1e-6
    with jax.enable_x64():
        kernel = functools.partial(least_squares.reconstruct_linear, rcond=rcond)
        return jax.tree.map(
            np.asarray, jax.jit(kernel)(*evidence.messages.flat(client))
        )


def _fit(evidence: Evidence, params: Params, known) -> jax.Array:
    """The values under which a model fits the targets best."""
    candidates = jnp.asarray(evidence.candidates)
    if evidence.continuous:
        return attribute.model_based_continuous(
            evidence.loss_fn, params, known, candidates
        )
    return attribute.model_based(evidence.loss_fn, params, known, candidates).index


def _loss(evidence: Evidence, params: Params, known: Known) -> jax.Array:
    """Mean loss [], with the sensitive block in the middle of its candidates."""
    middle = jnp.asarray(evidence.candidates).mean(axis=0)
    block = jnp.broadcast_to(middle, (len(known.mask), len(middle)))
    batch = Batch(attribute.complete(known.public, block), known.y, known.mask)
    return losses.batch_loss(evidence.loss_fn, params, batch)


def _cannot_simulate(evidence: Evidence) -> str:
    pace = evidence.pace
    if pace.missing:
        return (
            f"needs {' and '.join(pace.missing)}: give --{' and --'.join(pace.missing)}"
        )
    if pace.optimiser != "sgd":
        return f"simulates plain SGD, the clients use {pace.optimiser}"
    if pace.algorithm == "fed_prox":
        return "does not simulate FedProx"
    return ""
