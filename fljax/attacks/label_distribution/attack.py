"""Algorithm 1 of Rajani et al. 2023, from an intercepted model to a distribution.

Divergences and OPEN choices:

* The paper fits its PCA on the very shadow clients that the predictor learns from. With noise
  and more parameters than shadow clients, a shadow client's own noise is in the components, so that its
  coordinates are larger than those of a message that was not there; the predictor would
  learn on one scale and be used on another. Here shadow clients of their own (`num_basis`) give
  the components and all others are new to them.
* Deltas are reduced, not weights; with one sent model they differ by a constant.
* OPEN: components are divided by one number, so that their mean variance is 1. On
  synthetic coordinates that was better than a number for each: in small local steps K
  labels have K - 1 components, and a tenth one is noise.
* Line 17 of the printed algorithm gives the predictor raw weights; as the text says, the
  PCA comes first.

What the adversary sees: the model sent, one client's delta, proxy rows with labels, and
how clients train. Never a client's rows or labels.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh

from fljax import parallel
from fljax.attacks.label_distribution import fusion, pca, shadow_clients
from fljax.attacks.label_distribution import posterior as posterior_lib
from fljax.attacks.label_distribution import predictor as predictor_lib
from fljax.attacks.label_distribution.shadow_clients import Pool, Recipe
from fljax.types import Array, Exchange, Key, Params, PyTree

_BASIS, _FIT, _TRAIN, _PREDICTOR = range(4)  # streams
_PREDICTOR_SETTINGS = predictor_lib.Settings()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How an attack is prepared.

    Attributes:
      alphas: concentrations of the shadow clients' distributions, taken in turn.
      num_basis: shadow clients that give the components.
      num_fit: shadow clients that the predictor learns from.
      components: k.
      kept: rows of the sketch of the PCA.
      chunk: shadow clients in memory at a time.
      predictor: how that is trained.
    """

    alphas: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0)
    num_basis: int = 2000
    num_fit: int = 10_000
    components: int = 10
    kept: int = 256
    chunk: int = 256
    predictor: predictor_lib.Settings = _PREDICTOR_SETTINGS


class Attack(NamedTuple):
    """Ready for any message of a client who was sent this model.

    Attributes:
      basis: principal components.
      params: of the predictor.
      mean: `[K]` mean distribution of the shadow clients: a baseline.
      readers: what is read beside the components; None without.
      fused: regression on both; None without.
      posterior: what both say of a distribution; None without.
    """

    basis: pca.Basis
    params: Params
    mean: Array
    readers: fusion.Readers | None = None
    fused: fusion.Fusion | None = None
    posterior: posterior_lib.Posterior | None = None


def fit(
    key: Key,
    sent: Params,
    rows: Pool,
    program: Callable,
    numbers: PyTree = None,
    *,
    settings: Settings,
    readers: fusion.Readers | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Attack:
    """Trains shadow clients, reduces their messages and trains the predictor.

    Args:
      key: consumed.
      sent: the intercepted model, of any round.
      rows: proxy rows.
      program: from `shadow_clients.compiled`, of how the adversary believes clients train.
      numbers: for its recipe.
      settings: how many of what.
      readers: for `predict_fused` and `predict_posterior`; without them only `predict` is
        prepared.
      progress: called with the number of shadow clients trained since the last call.
    """
    num_labels = len(rows.count)
    names = jax.random.fold_in(key, _TRAIN)

    def stream(which, begin, count):
        drawn = jax.random.fold_in(key, which)
        shares, _ = shadow_clients.dirichlet(drawn, settings.alphas, count, num_labels)
        numbered = np.arange(begin, begin + count)
        for trained in shadow_clients.chunks(
            program, names, numbered, shares, sent, rows, numbers, size=settings.chunk
        ):
            yield trained
            progress(len(trained.labels))

    sketch = pca.start(settings.kept, ravel_pytree(sent)[0].size)
    for trained in stream(_BASIS, 0, settings.num_basis):
        sketch = pca.update(sketch, trained.delta)
    basis = pca.basis(sketch, settings.components)
    seen = [
        (_read(basis, readers, trained.delta), trained.labels)
        for trained in stream(_FIT, settings.num_basis, settings.num_fit)
    ]
    numbers, y = (jnp.concatenate(each) for each in zip(*seen, strict=True))
    x = numbers[:, : len(basis.directions)]
    params = predictor_lib.fit(
        jax.random.fold_in(key, _PREDICTOR), x, y, settings.predictor
    )
    learned = Attack(basis, params, jnp.mean(y, axis=0), readers)
    if readers is None:
        return learned
    return learned._replace(
        fused=fusion.fit(numbers, y),
        posterior=posterior_lib.fit(numbers, y, len(settings.alphas)),
    )


def predict(attack: Attack, messages: Array) -> jax.Array:
    """Label distributions `[n, K]` of the senders of raveled messages `[n, P]`."""
    along = pca.project(attack.basis, jnp.asarray(messages))
    return predictor_lib.predict(attack.params, along)


def predict_fused(attack: Attack, messages: Array) -> jax.Array:
    """As `predict`, by `fusion`.

    Raises:
      ValueError: the attack was prepared without readers.
    """
    return fusion.predict(attack.fused, _all_numbers(attack, messages))


def predict_posterior(key: Key, attack: Attack, messages: Array) -> jax.Array:
    """As `predict`, by `posterior`; a client's estimate is the same beside any others.

    Raises:
      ValueError: the attack was prepared without readers.
    """
    numbers = _all_numbers(attack, messages)
    return posterior_lib.predict(key, attack.posterior, numbers)


def _all_numbers(attack: Attack, messages: Array) -> jax.Array:
    if attack.readers is None:
        raise ValueError("attack: expected one that was prepared with readers")
    return _read(attack.basis, attack.readers, jnp.asarray(messages))


def _read(basis: pca.Basis, readers: fusion.Readers | None, messages: Array):
    """Components `[n, k]` of messages, and what the readers read behind them."""
    if readers is None:
        return pca.project(basis, messages)
    return fusion.read(basis, readers, messages)


def infer(
    key: Key,
    exchange: Exchange,
    at: int,
    rows: Pool,
    recipe: Recipe,
    numbers: PyTree = None,
    *,
    settings: Settings,
    over: Mesh | None = None,
) -> jax.Array:
    """The whole attack on one message of one client.

    Args:
      key: consumed.
      exchange: its messages, of any model.
      at: which of them, from 0; -1 is the last.
      rows: proxy rows.
      recipe: how the adversary believes that it trains.
      numbers: for the recipe.
      settings: how many of what.
      over: devices; all by default.

    Returns:
      `[K]` its label distribution.
    """
    over = parallel.mesh() if over is None else over
    sent = jax.tree.map(lambda leaf: jnp.asarray(leaf[at]), exchange.params)
    delta = jax.tree.map(lambda leaf: jnp.asarray(leaf[at]), exchange.delta)
    program = shadow_clients.compiled(recipe, over)
    attack = fit(key, sent, rows, program, numbers, settings=settings)
    return predict(attack, ravel_pytree(delta)[0][None])[0]
