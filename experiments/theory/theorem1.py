"""Theorem 1 of Diana et al. (AAAI-25) measured: Algorithm 2 under mini-batch noise.

The theorem bounds the distance between Algorithm 2's estimate and the client's least
squares optimum. Its assumptions, and how they are met on generated rows:

1. Full rank: rows are normal with an intercept, many more than parameters.
2. Sub-Gaussian gradient noise of scale sigma: E exp((e / sigma)^2) <= e at every model and
   of every component e. A mini-batch's noise is bounded at any one
   model, but grows with the distance from the optimum; sigma is the least that drawn
   mini-batches allow at the noisiest of the sent models. The proof also takes the
   noise of different local steps as independent: so it is where every step draws its
   rows anew, with replacement (`independent`), and not in the epochs of Algorithm 4 as
   it is run everywhere, without replacement (`shuffled`).
3. Sent models do not depend on the client's earlier noise. A real federation only comes
   near that, and its global model settles, which makes its messages collinear. Here a
   man-in-the-middle server, which the paper names as the case that meets the assumption,
   draws every sent model (`mitm_server`).
4. lambda, the smallest eigenvalue of Theta_out^T Theta_out / n_c, is bounded below. It is
   measured in every run, for it shrinks with learning rate and number of local steps.

Eq. (6) leaves out a factor 1 / lambda_min(W) that the last line of the proof, eq. (18) of
the appendix, has and that also depends on learning rate and local steps. `rate` is
eq. (6) with constant 1, `bound` is eq. (18).

The proof takes the noise as independent of the regressors. It is not, for the deltas that
are regressed on carry it: unless the sent models lie around the optimum, the estimate
keeps an error that more messages do not remove (errors in variables). `forward` is the
regression the other way round, of the deltas on the sent models, solved for the model
that would not move; it needs assumption 3 and independent steps, nothing else.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.theory import estimates, mitm_server
from experiments.theory.mitm_server import Client, Point

_SEEN = 2000  # sent models at which the noise is measured
_DRAWS = 20_000  # mini-batches of each
_HALVINGS = 40
_TINY, _LARGE = 1e-300, 50.0


class Measured(NamedTuple):
    """Numbers `[points, seeds]`.

    Attributes:
      reconstruct: distance of Algorithm 2's estimate from the optimum.
      forward: the same of the regression the other way round.
      rate: eq. (6), its constant taken as 1.
      bound: eq. (18).
      eigenvalue: lambda.
      noise: sigma.
    """

    reconstruct: np.ndarray
    forward: np.ndarray
    rate: np.ndarray
    bound: np.ndarray
    eigenvalue: np.ndarray
    noise: np.ndarray


def measure(
    client: Client,
    points: Sequence[Point],
    sampling: str,
    sent: np.ndarray,
    delta: np.ndarray,
    probability: float,
) -> Measured:
    """Errors of both estimates beside the theorem's right-hand side.

    Args:
      client: from `generate`.
      points: of equal `num_messages` `R`.
      sampling: how the messages came about.
      sent: `[points, seeds, R, d]`.
      delta: `[points, seeds, R, d]`.
      probability: delta of the theorem, with which its bound may fail.
    """
    num_messages, size = sent.shape[2:]
    out = np.concatenate([delta, np.ones_like(delta[..., :1])], axis=-1)
    smallest = np.linalg.svd(out, compute_uv=False)[..., -1]
    eigenvalue = np.square(smallest) / num_messages
    noise = np.stack(
        [_noise(client, s, p, sampling) for s, p in zip(sent, points, strict=True)]
    )
    steps = np.array([p.steps(client.y.shape[1]) for p in points])[:, None]
    rates = np.array([p.learning_rate for p in points])[:, None]
    confidence = size + 1 + np.log(2 * size / probability)
    rate = rates * noise * size
    rate *= np.sqrt(size * steps * confidence / (num_messages * eigenvalue))
    curvature = np.linalg.eigvalsh(mitm_server.hessian(client))[:, 0]
    contraction = 1 - (1 - 2 * rates * curvature) ** steps  # lambda_min(W)

    def distance(estimate):
        return np.linalg.norm(estimate - client.optimum, axis=-1)

    return Measured(
        reconstruct=distance(estimates.algorithm2(sent, delta)),
        forward=distance(estimates.forward(sent, delta)),
        rate=rate,
        bound=rate / contraction,
        eigenvalue=eigenvalue,
        noise=noise,
    )


def _noise(client: Client, sent: np.ndarray, point: Point, sampling: str) -> np.ndarray:
    """Scale `[seeds]` of a mini-batch gradient's noise, as assumption 2 has it."""
    rng, (num_rows, size) = np.random.default_rng(0), client.x.shape[1:]
    drawn = rng.integers(0, num_rows, (_DRAWS, point.batch_size))
    if sampling == "shuffled":
        if point.batch_size >= num_rows:
            return np.zeros(len(sent))
        order = rng.permuted(np.tile(np.arange(num_rows), (_DRAWS, 1)), axis=1)
        drawn = order[:, : point.batch_size]
    found = []
    for params, x, y in zip(sent[:, :_SEEN], client.x, client.y, strict=True):
        gradient = 2 * (params @ x.T - y)[..., None] * x  # [R, rows, d]
        noisiest = gradient.var(axis=1).argmax(axis=0)  # of each component
        worst = gradient[noisiest, :, np.arange(size)]  # [d, rows]
        noise = worst[:, drawn].mean(axis=-1) - worst.mean(axis=1, keepdims=True)
        found.append(_scale(noise).max())
    return np.array(found)


def _scale(noise: np.ndarray) -> np.ndarray:
    """The least sigma `[d]` with E exp((noise / sigma)^2) <= e, of draws `[d, n]`."""
    low, high = np.zeros(len(noise)), np.abs(noise).max(axis=1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        scaled = np.square(noise) / np.maximum(np.square(middle), _TINY)[:, None]
        holds = np.exp(np.minimum(scaled, _LARGE)).mean(axis=1) <= np.e
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return high
