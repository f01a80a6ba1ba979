"""Whitening: its matrices, and that it makes an ill-conditioned problem easy."""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks.inversion import solvers
from fljax.attacks.inversion.solvers import Problem


def test_the_gauss_newton_matrix_is_that_of_the_jacobian(monkeypatch):
    monkeypatch.setattr(solvers, "_WIDTH", 2)
    matrix = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)

    def residuals(x):
        return jnp.sin(matrix @ x)

    at = jnp.linspace(-1, 1, 5)
    jacobian = jax.jacobian(residuals)(at)
    found = solvers._gauss_newton(residuals, at)
    np.testing.assert_allclose(found, jacobian.T @ jacobian, rtol=1e-4, atol=1e-5)


def test_a_whitened_matrix_is_the_identity():
    factor = np.random.default_rng(0).normal(size=(9, 6)).astype(np.float32)
    gram = factor.T @ factor
    ridge = 0.1 * np.trace(gram) / 6
    root = solvers._inverse_root(gram, 0.1)
    damped = gram + ridge * np.eye(6)
    np.testing.assert_allclose(root @ damped @ root.T, np.eye(6), atol=1e-4)
    assert np.abs(root.T @ damped @ root - np.eye(6)).max() > 0.1  # sides matter


def test_one_whitened_iteration_solves_what_curvatures_make_hard():
    """Least squares whose curvatures span five decades, turned by two rotations."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(12, 12)))[0] for _ in range(2))
    matrix = jnp.asarray(left * np.logspace(0, -2.5, 12) @ right, jnp.float32)
    truth = jnp.asarray(rng.normal(size=12), jnp.float32)

    def residuals(x):
        return matrix @ (x - truth)

    problem = Problem(lambda x: jnp.sum(residuals(x) ** 2), residuals)
    start, far = jnp.zeros(12), {}
    for name, solver in {
        "whitened": solvers.whitened_lbfgs(1e-7, inner_iterations=4),
        "plain": solvers.lbfgs(inner_iterations=4),
    }.items():
        step = jax.jit(lambda x, s=solver: s.step(problem, x, s.init(x)))(start)
        far[name] = float(jnp.abs(step.variables - truth).max())
    assert far["whitened"] < 1e-2
    assert far["plain"] > 0.1
