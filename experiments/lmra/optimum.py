"""The local optimum, to convergence: the truth that the attack is after."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.lmra.clients import Clients
from fljax import losses
from fljax.types import Batch

_ITERATIONS = 60


def local_optima(clients: Clients, ridge: float) -> np.ndarray:
    """`[seeds, C, P]` minimisers of every client's mean loss plus `ridge / 2 |theta|^2`.

    Newton's method in float64 with a step that grows when it helps and shrinks when
    it does not. Where classes are separable the penalty alone keeps the optimum finite.
    """
    with jax.enable_x64(True):
        zeros, unravel = ravel_pytree(clients.task.model.init(jax.random.key(0)))
        zeros = jnp.zeros(zeros.shape, jnp.float64)

        def optimum(part):
            batch = Batch(part.rows.x, part.rows.y, part.mask)

            def loss(theta):
                fit = losses.batch_loss(clients.task.loss_fn, unravel(theta), batch)
                return fit + ridge / 2 * jnp.sum(jnp.square(theta))

            return _newton(loss, zeros)

        part = jax.tree.map(_wide, clients.own)
        return np.asarray(jax.jit(jax.vmap(lambda p: jax.lax.map(optimum, p)))(part))


def _wide(leaf: np.ndarray) -> np.ndarray:
    return leaf.astype(np.float64) if leaf.dtype == np.float32 else leaf


def _newton(loss, start):
    def step(_, carry):
        theta, caution = carry
        hessian = jax.hessian(loss)(theta) + caution * jnp.eye(len(theta))
        tried = theta - jnp.linalg.solve(hessian, jax.grad(loss)(theta))
        better = loss(tried) < loss(theta)
        theta = jnp.where(better, tried, theta)
        return theta, jnp.where(better, caution / 10, caution * 10)

    return jax.lax.fori_loop(0, _ITERATIONS, step, (start, jnp.asarray(1e-3)))[0]
