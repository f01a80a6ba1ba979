"""The attack on the clients of one seed, beside what needs no shadow clients.

| attack | setting | what it uses |
|---|---|---|
| `predictor` | passive | Algorithm 1, shadow clients with the clients' defense |
| `predictor_unaware` | passive | Algorithm 1, shadow clients without |
| `fused` | passive | the same shadow clients, components and closed forms weighed together (fljax) |
| `class_gradients` | closed_form | first order, all parameters (fljax, not the paper) |
| `last_layer` | closed_form | delta of the last layer's bias |
| `mean_distribution` | baseline | no message: the shadow clients' mean distribution |
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.label_distribution import shields
from experiments.label_distribution.settings import Config
from experiments.label_distribution.shields import NONE, Shield
from experiments.label_distribution.task import Task
from fljax import parallel
from fljax.attacks import label_distribution
from fljax.attacks.label_distribution import predictor, rules, shadow_clients
from fljax.types import Key, Params

_ATTACK, _SHARES, _VICTIMS = 10, 11, 12  # streams of a seed
SETTINGS = {
    "predictor": "passive",
    "predictor_unaware": "passive",
    "fused": "passive",
    "class_gradients": "closed_form",
    "last_layer": "closed_form",
    "mean_distribution": "baseline",
}


class Guesses(NamedTuple):
    """What an adversary said of `n` clients.

    Attributes:
      guess: attack -> `[n, K]`.
      truth: `[n, K]`.
      alphas: `[n]` the concentration of each client.
    """

    guess: dict[str, np.ndarray]
    truth: np.ndarray
    alphas: np.ndarray


class Attacks:
    """Compiled programs and what several defenses share.

    The adversary who does not know of a defense prepares once for all of them.
    """

    def __init__(self, run: Config, task: Task, progress: Callable[[int], None]):
        self._run, self._task, self._progress = run, task, progress
        self._over = parallel.mesh()
        self._pools = parallel.place((task.proxy, task.own), self._over)
        self._programs: dict[str, Callable] = {}
        self._unaware: dict[int, label_distribution.Attack] = {}

    def run(self, shield: Shield, seed: int, sent: Params) -> Guesses:
        """Attacks every client of a seed under one defense.

        Args:
          shield: of the clients.
          seed: of the draws of the adversary and of the clients, which are independent.
          sent: the intercepted model.
        """
        readers = self._readers(sent)
        found: dict[str, label_distribution.Attack] = {}
        if "aware" in self._run.attackers:
            found["predictor"] = self._prepare(shield, seed, sent, readers)
        if "unaware" in self._run.attackers:
            if seed not in self._unaware or self._run.attack_round:
                self._unaware[seed] = self._prepare(NONE, seed, sent, readers)
            found["predictor_unaware"] = self._unaware[seed]
        return self._attack(found, readers, shield, seed, sent)

    def _readers(self, sent: Params) -> label_distribution.Readers:
        gradients = _mean_gradients(self._task, sent, self._pools[0])
        place = self._task.bias
        if place is None:
            return label_distribution.Readers(gradients, jnp.zeros(0, jnp.int32))
        bias = rules.span(sent, *place)
        return label_distribution.Readers(gradients, jnp.arange(bias.start, bias.stop))

    def _prepare(self, shield: Shield, seed: int, sent: Params, readers):
        return label_distribution.fit(
            _stream(seed, _ATTACK),
            sent,
            self._pools[0],
            self._program(shield.name),
            jnp.float32(shield.number),
            settings=settings(self._run),
            readers=readers,
            progress=self._progress,
        )

    def _attack(self, attacks, readers, shield, seed: int, sent: Params) -> Guesses:
        run, task, own = self._run, self._task, self._pools[1]
        gradients, bias = readers
        distance = run.learning_rate * shields.steps(run)
        shares, alphas = shadow_clients.dirichlet(
            _stream(seed, _SHARES), run.alphas, run.test_clients, len(task.classes)
        )
        guesses, truth = [], []
        for seen in shadow_clients.chunks(
            self._program(shield.name), _stream(seed, _VICTIMS),
            np.arange(run.test_clients), shares, sent, own, jnp.float32(shield.number),
            size=run.chunk,
        ):  # fmt: skip
            guess = {
                name: label_distribution.predict(attack, seen.delta)
                for name, attack in attacks.items()
            }
            if "predictor" in attacks:
                guess["fused"] = label_distribution.predict_fused(
                    attacks["predictor"], seen.delta
                )
            guess["class_gradients"] = rules.class_gradients(seen.delta, gradients)
            if len(bias):
                guess["last_layer"] = rules.last_layer(
                    seen.delta[:, bias], gradients[:, bias], distance
                )
            mean = next(iter(attacks.values())).mean
            guess["mean_distribution"] = jnp.tile(mean[None], (len(seen.labels), 1))
            guesses.append(jax.device_get(guess))
            truth.append(jax.device_get(seen.labels))
            self._progress(len(seen.labels))
        joined = {
            name: np.concatenate([each[name] for each in guesses])
            for name in SETTINGS
            if name in guesses[0]
        }
        return Guesses(joined, np.concatenate(truth), alphas)

    def _program(self, name: str) -> Callable:
        if name not in self._programs:
            recipe = recipe_of(self._run, self._task, name)
            made = shadow_clients.compiled(recipe, self._over, self._run.lanes)
            self._programs[name] = made
        return self._programs[name]


def recipe_of(run: Config, task: Task, name: str) -> shadow_clients.Recipe:
    """How a client with a defense trains."""

    def local(number):
        return shields.local_update(run, task, name, number, task.look_up)

    return shadow_clients.Recipe(
        local, run.rows_per_client, run.batch_size, run.local_epochs
    )


def settings(run: Config) -> label_distribution.Settings:
    """Of the attack."""
    return label_distribution.Settings(
        alphas=run.alphas,
        num_basis=run.basis_clients,
        num_fit=run.train_clients,
        components=run.components,
        kept=run.kept,
        chunk=run.chunk,
        predictor=predictor.Settings(
            hidden=run.predictor_hidden,
            learning_rate=run.predictor_rate,
            epochs=run.predictor_epochs,
            batch_size=run.predictor_batch,
        ),
    )


def parameters(sent: Params) -> int:
    """P."""
    return ravel_pytree(sent)[0].size


def _mean_gradients(task: Task, sent: Params, proxy: shadow_clients.Pool) -> jax.Array:
    def loss_fn(params, x, y):
        return task.loss_fn(params, task.look_up(x), y)

    found = jax.jit(lambda s, p: rules.mean_gradients(loss_fn, s, p))(sent, proxy)
    return jax.device_put(found, jax.devices()[0])


def _stream(seed: int, number: int) -> Key:
    return jax.random.fold_in(jax.random.key(seed), number)
