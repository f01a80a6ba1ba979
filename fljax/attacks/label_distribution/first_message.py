"""`class_gradients` and `predictor`: label distributions from proxy rows.

They read each client's first message: the closed form over class gradients of the proxy
rows (`rules`), Algorithm 1 of Rajani et al. 2023 (`attack`), and what its shadow clients
teach of both (`predictor_posterior`). These train as the attacked ones are known to, with
FedProx's term and the defense. A defense of which only the budget is known, not the delta,
gives them its clip and no noise; a clip that decays is that of the first round; Poisson
samples are stood in for by shuffled batches of their size. The closed form knows of no
defense.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from fljax import local, parallel, precision
from fljax.attacks import others, streams
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.attacks.estimates import Estimates, LabelEstimate, NotApplicable
from fljax.attacks.label_distribution import (
    attack,
    predictor,
    rules,
    shadow_clients,
)
from fljax.attacks.label_distribution.fusion import Readers
from fljax.attacks.label_distribution.last_layer import without_messages
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.defenses import clipping, specs
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Spec
from fljax.transcript import views
from fljax.types import Defense, Features

_PREDICTOR = predictor.Settings(hidden=(128,) * 4)
_POSTERIOR = "predictor_posterior"


class Settings(NamedTuple):
    """How many shadow clients the predictor learns from, at least 8."""

    shadow_clients: int = 600


def run_class_gradients(view: AdversaryView, settings: None) -> Estimates:
    """Least squares of each client's first message over class gradients."""
    del settings
    pool = jax.tree.map(jnp.asarray, pool_of(view))
    value, beside, gradients = [], [], {}
    for sent, delta, strange, round_ in _first_messages(view):
        if round_ not in gradients:  # all clients of a round were sent one model
            gradients[round_] = _mean_gradients(view.mean_loss, sent, pool)
        value.append(_closed_form(delta, gradients[round_]))
        if strange is not None:
            beside.append(_closed_form(strange, gradients[round_]))
    baseline, strange = without_messages(view), np.stack(beside) if beside else None
    estimate = LabelEstimate(np.stack(value), baseline, "closed_form", strange)
    return {"class_gradients": estimate}


def run_predictor(view: AdversaryView, settings: Settings) -> Estimates:
    """Algorithm 1, and `attack.predict_posterior`; clients that are alike share their shadow clients."""
    pool, prepared, gradients = pool_of(view), {}, {}
    value: dict[str, list[jax.Array]] = {"predictor": [], _POSTERIOR: []}
    beside: dict[str, list[jax.Array]] = {name: [] for name in value}
    firsts, sizes = list(_first_messages(view)), view.sizes.tolist()
    try:
        trained = {
            (round_, rows): _program(_Told.of(view, rows, round_))
            for (*_, round_), rows in zip(firsts, sizes, strict=True)
        }
    except ValueError as error:
        return {name: NotApplicable(str(error)) for name in value}
    for (sent, delta, strange, round_), rows, client in zip(
        firsts, sizes, view.clients, strict=True
    ):
        if (round_, rows) not in prepared:
            stream = streams.key(view.seed, streams.PREDICTOR, round_)
            if round_ not in gradients:
                gradients[round_] = _mean_gradients(view.mean_loss, sent, pool)
            prepared[round_, rows] = attack.fit(
                jax.random.fold_in(stream, rows),
                sent,
                pool,
                trained[round_, rows],
                settings=_attack_settings(settings.shadow_clients),
                readers=Readers(gradients[round_], jnp.zeros(0, jnp.int32)),
            )
        learned = prepared[round_, rows]
        draws = streams.key(view.seed, streams.POSTERIOR, client)
        for found, given in ((value, delta), (beside, strange)):
            if given is None:
                continue
            message = ravel_pytree(given)[0][None]
            found["predictor"].append(attack.predict(learned, message)[0])
            posterior = attack.predict_posterior(draws, learned, message)
            found[_POSTERIOR].append(posterior[0])
    baseline = without_messages(view)
    return {
        name: LabelEstimate(
            np.stack(each),
            baseline,
            others=np.stack(beside[name]) if beside[name] else None,
        )
        for name, each in value.items()
    }


@functools.partial(jax.jit, static_argnums=0)
@precision.full
def _mean_gradients(loss_fn, sent, pool):
    return rules.mean_gradients(loss_fn, sent, pool)


@jax.jit
@precision.full
def _closed_form(delta, gradients):
    return rules.class_gradients(ravel_pytree(delta)[0][None], gradients)[0]


def _attack_settings(count: int) -> attack.Settings:
    basis = max(count // 4, 8)
    return attack.Settings(
        num_basis=basis,
        num_fit=count,
        components=min(10, basis - 1),
        kept=min(256, basis),
        chunk=64,
        predictor=_PREDICTOR,
    )


class _Told(NamedTuple):
    """What is known of a client's training; hashable."""

    loss_fn: Callable
    training: LocalTraining
    rows: int
    defense: Spec
    num_layers: int
    num_rounds: int

    @classmethod
    def of(cls, view: AdversaryView, rows: int, round_: int) -> "_Told":
        """Of a client in a round, whose learning rate it has all the time."""
        assert view.transcript is not None
        layers = clipping.num_layers(view.transcript.params)
        spec, training = view.defense or specs.NONE, view.training
        if training.schedule and training.learning_rate is not None:
            rate = training.learning_rate * float(training.factors(np.asarray(round_)))
            training = training._replace(learning_rate=rate, schedule=())
        return cls(view.mean_loss, training, rows, spec, layers, view.num_rounds)


@functools.lru_cache(maxsize=64)  # another seed finds it
def _program(told: _Told) -> Callable:
    """Trains shadow clients as a client of so many rows is believed to train.

    Raises:
      ValueError: the defense cannot be built.
    """
    training, defense = told.training, _defense(told)
    update = local.sgd(
        told.loss_fn,
        _optimiser(training),
        proximal=training.proximal if training.algorithm == "fed_prox" else None,
        gradient=defense.gradient,
        encode=defense.encode,
    )
    batch, epochs = training.batch_size or told.rows, training.epochs or 1
    recipe = shadow_clients.Recipe(
        lambda _: update, told.rows, batch, epochs, drop_last=training.drop_last
    )
    return shadow_clients.compiled(recipe, parallel.mesh())


def _optimiser(training: LocalTraining) -> optax.GradientTransformation:
    """The rule of `LocalTraining`, with weight decay as PyTorch has it."""
    rate, decay = training.learning_rate or 0.0, training.weight_decay
    if training.optimiser == "adamw":
        return optax.adamw(rate, weight_decay=decay)
    rule = optax.adam(rate)
    if training.optimiser == "sgd":
        rule = optax.sgd(rate, training.momentum or None)
    return optax.chain(optax.add_decayed_weights(decay), rule) if decay else rule


def _defense(told: _Told) -> Defense:
    spec, rows = told.defense, told.rows
    unknown = [{"sigma": 0.0} if part.has_budget else {} for part in spec.parts]
    spec = specs.replaced(spec, unknown)
    setting = Setting.of_clients(
        told.loss_fn,
        told.num_layers,
        rows,
        told.training.batch_size or None,
        poisson=specs.needs_poisson(spec),
        drop_last=told.training.drop_last,
        num_rounds=told.num_rounds,
    )
    return specs.bind(spec, setting)


def pool_of(view: AdversaryView) -> shadow_clients.Pool:
    """The adversary's own rows, by class."""
    assert view.proxy is not None
    nothing = np.zeros((len(view.proxy.y), 0), np.int32)
    x = Features(view.proxy.x, nothing)
    return shadow_clients.pool(x, view.proxy.y, view.outputs)


def _first_messages(view: AdversaryView):
    """Of each client's first message: model sent, delta, others' delta, number of the round."""
    assert view.transcript is not None and view.messages is not None
    for client in range(len(view.clients)):
        places = views.first(view.messages.of(client), 1)
        first = views.messages(view.transcript, places)
        sent, delta = jax.tree.map(
            lambda leaf: jnp.asarray(np.asarray(leaf[0], np.float32)), first
        )
        strange = others.of_messages(view, places)
        if strange is not None:
            strange = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), strange)
        yield sent, delta, strange, int(view.transcript.round[places.row[0]])


_GROUP = "label_distribution"
CLASS_GRADIENTS = AttackSpec(
    "class_gradients",
    Needs(task="multiclass", proxy=True),
    run_class_gradients,
    gives=LabelEstimate,
    group=_GROUP,
)
PREDICTOR = AttackSpec(
    "predictor",
    Needs(
        task="multiclass",
        proxy=True,
        training=True,
        epochs=True,
        optimisers=("sgd", "adam", "adamw"),
        plain=False,
        schedules=True,
    ),
    run_predictor,
    Settings(),
    gives=LabelEstimate,
    group=_GROUP,
)
