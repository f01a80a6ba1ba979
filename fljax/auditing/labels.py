"""What a client's messages tell of her labels; her targets are not used.

Closed form of the last layer's bias (`fljax.attacks.label_distribution.rules`): of
plain SGD, `delta / (learning rate * steps) = mean softmax - label distribution`. Here
the mean softmax is that of her public rows under every value of the sensitive column,
halfway between the model sent and the model returned, and the result is a mean over
all her messages. With proxy rows also Algorithm 1 of Rajani et al. 2023 and the closed
form over class gradients, both on her first message.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from fljax import local, parallel
from fljax.attacks import attribute, label_distribution
from fljax.attacks.label_distribution import predictor, rules, shadow_clients
from fljax.auditing.evidence import (
    Answers,
    Evidence,
    Shares,
    Skipped,
    key,
    over_clients,
)
from fljax.types import Features, Params

_PREDICTOR = 2  # stream of the seed
_SETTINGS = predictor.Settings(hidden=(128,) * 4)


def shares(evidence: Evidence) -> Answers:
    """Every label-distribution attack, and the distribution without any message."""
    if evidence.task != "multiclass":
        return {"label_distribution": Skipped("needs --task=multiclass")}
    found: Answers = {"mean_distribution": _without(evidence)}
    found["last_layer"] = _last_layer(evidence)
    proxy = evidence.proxy
    if proxy is None:
        why = Skipped("needs rows of the adversary's own: give --proxy")
        return found | {"class_gradients": why, "predictor": why}
    absent = sorted(set(range(evidence.classes)) - set(proxy.y.tolist()))
    if absent:
        why = Skipped(f"--proxy has no row of class {absent[0]}")
        return found | {"class_gradients": why, "predictor": why}
    nothing = np.zeros((len(proxy.y), 0), np.int32)
    pool = shadow_clients.pool(Features(proxy.x, nothing), proxy.y, evidence.classes)
    found["class_gradients"] = _class_gradients(evidence, pool)
    return found | {"predictor": _predictor(evidence, pool)}


def _without(evidence: Evidence) -> Shares:
    """The proxy rows' distribution, uniform without any."""
    clients, classes = len(evidence.sizes), evidence.classes
    mean = np.full(classes, 1 / classes)
    if evidence.proxy is not None:
        counts = np.bincount(evidence.proxy.y, minlength=classes)
        mean = counts / counts.sum()
    return Shares(np.tile(mean, (clients, 1)), "baseline", baseline=True)


def _last_layer(evidence: Evidence):
    pace = evidence.pace
    bias = _bias(evidence)
    if bias is None:
        return Skipped("the model has no array that must be its last layer's bias")
    if pace.missing or pace.optimiser != "sgd":
        wanted = " and ".join(pace.missing) or "plain SGD"
        return Skipped(f"needs {wanted}")
    distance = pace.learning_rate * pace.local_steps(evidence.sizes)

    def one(number, exchange, known, distance):
        del number

        def message(at):
            sent = jax.tree.map(lambda leaf: leaf[at], exchange.params)
            delta = jax.tree.map(lambda leaf: leaf[at], exchange.delta)
            half = jax.tree.map(lambda leaf, d: leaf - d / 2, sent, delta)
            moved = jax.tree.leaves(delta)[bias]
            return _mean_softmax(evidence, half, known) - moved / distance

        count = len(jax.tree.leaves(exchange)[0])
        found = jnp.mean(jax.lax.map(message, jnp.arange(count)), axis=0)
        return rules.to_simplex(found[None])[0]

    answer = over_clients(one, evidence, np.asarray(distance, np.float32))
    return Shares(answer, "closed_form")


def _bias(evidence: Evidence) -> int | None:
    """Which leaf adds to the outputs: the only one of `[K]`, or that of the last layer."""
    leaves = jax.tree_util.tree_leaves_with_path(evidence.messages.seen.params)
    fits = [
        number
        for number, (_, leaf) in enumerate(leaves)
        if leaf.shape[1:] == (evidence.classes,)
    ]
    return fits[0] if len(fits) == 1 else None


def _mean_softmax(evidence: Evidence, params: Params, known) -> jax.Array:
    def under(candidate):
        def row(x):
            full = attribute.complete(x, candidate)
            return jax.nn.softmax(evidence.output(params, full))

        values = jax.vmap(row)(known.public)
        real = known.mask[:, None]
        return jnp.sum(jnp.where(real, values, 0), axis=0) / jnp.sum(real)

    candidates = jnp.asarray(evidence.candidates)
    return jnp.mean(jax.lax.map(under, candidates), axis=0)


def _class_gradients(evidence: Evidence, pool: shadow_clients.Pool) -> Shares:
    pool = jax.tree.map(jnp.asarray, pool)

    def one(number, exchange, known):
        del number, known
        sent, delta = (jax.tree.map(lambda leaf: leaf[0], tree) for tree in exchange)
        gradients = rules.mean_gradients(evidence.loss_fn, sent, pool)
        return rules.class_gradients(ravel_pytree(delta)[0][None], gradients)[0]

    return Shares(over_clients(one, evidence), "closed_form")


def _predictor(evidence: Evidence, pool: shadow_clients.Pool):
    pace = evidence.pace
    if pace.missing or pace.optimiser not in ("sgd", "adam"):
        wanted = " and ".join(pace.missing) or "clients that use sgd or adam"
        return Skipped(f"needs {wanted}")
    if pace.steps is not None:
        return Skipped("needs --batch_size and --local_epochs, got local steps")
    rate = pace.learning_rate
    optimiser = optax.sgd(rate) if pace.optimiser == "sgd" else optax.adam(rate)
    update = local.sgd(evidence.loss_fn, optimiser)
    count = evidence.told.dummies
    basis = max(count // 4, 8)
    settings = label_distribution.Settings(
        num_basis=basis,
        num_fit=count,
        components=min(10, basis - 1),
        kept=min(256, basis),
        chunk=64,
        predictor=_SETTINGS,
    )
    found, prepared = [], {}
    box = evidence.messages
    for client, rows in enumerate(evidence.sizes.tolist()):
        at = int(box.row[client, 0])
        sent = jax.tree.map(lambda leaf, r=at: jnp.asarray(leaf[r]), box.seen.params)
        if (
            at,
            rows,
        ) not in prepared:  # clients that are alike share them
            recipe = shadow_clients.Recipe(
                lambda _: update, rows, pace.batch_size or rows, pace.epochs or 1
            )
            program = shadow_clients.compiled(recipe, parallel.mesh())
            stream = key(evidence.told.seed, _PREDICTOR, len(prepared))
            prepared[at, rows] = label_distribution.fit(
                stream, sent, pool, program, settings=settings
            )
        slot = box.slot[client, 0]
        delta = jax.tree.map(lambda leaf, r=at, s=slot: leaf[r, s], box.seen.delta)
        message = ravel_pytree(delta)[0][None]
        found.append(label_distribution.predict(prepared[at, rows], message)[0])
    return Shares(np.stack(found))
