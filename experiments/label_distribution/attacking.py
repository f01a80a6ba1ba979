"""The attacks on the clients of one seed, from their messages alone.

| attack | setting | what it uses |
|---|---|---|
| `predictor` | passive | Algorithm 1, shadow clients with the clients' defense |
| `predictor_unaware` | passive | Algorithm 1, shadow clients without |
| `fused` | passive | the same shadow clients, components and closed forms weighed together (fljax) |
| `predictor_posterior` | passive | the same numbers, beside what is known of clients before (fljax) |
| `class_gradients` | closed_form | first order, all parameters (fljax, not the paper) |
| `last_layer` | closed_form | delta of the last layer's bias |
| `simulated_path` | passive | expected local training of proxy rows, with `--path_steps` (fljax) |
| `mean_distribution` | baseline | no message: the shadow clients' mean distribution |
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.label_distribution import defended
from experiments.label_distribution.settings import Config
from experiments.label_distribution.task import Task
from experiments.label_distribution.training import Programs
from fljax import parallel
from fljax.attacks import label_distribution
from fljax.attacks.label_distribution import predictor, rules, simulated_path
from fljax.defenses import specs
from fljax.defenses.specs import Spec
from fljax.types import Array, Key, Params

_ATTACK, _PATH, _POSTERIOR = 10, 13, 14  # streams of a seed
SETTINGS = {
    "predictor": "passive",
    "predictor_unaware": "passive",
    "fused": "passive",
    "predictor_posterior": "passive",
    "simulated_path": "passive",
    "class_gradients": "closed_form",
    "last_layer": "closed_form",
    "mean_distribution": "baseline",
}


class Adversary(NamedTuple):
    """Ready for any message of a client that was sent one model.

    Attributes:
      attacks: what learned from shadow clients, by the names of `SETTINGS`.
      readers: the model's gradients by label, and where the last layer's bias lies.
      distance: learning rate times local steps.
      path: `simulated_path` of messages; None where it is not run.
      key: of the draws of `predictor_posterior`.
    """

    attacks: dict[str, label_distribution.Attack]
    readers: label_distribution.Readers
    distance: float
    path: Callable[[Array], Array] | None
    key: Key


class Preparation:
    """Trains shadow clients on proxy rows.

    An adversary that does not know of a defense prepares once for all of them.
    """

    def __init__(
        self,
        run: Config,
        task: Task,
        programs: Programs,
        progress: Callable[[int], None],
    ):
        """Trains nothing yet.

        Args:
          run: how many shadow clients, and what learns from them.
          task: what clients train, and the proxy rows.
          programs: of their training.
          progress: called with the number of clients trained since the last call.
        """
        self._run, self._task, self._programs = run, task, programs
        self._progress = progress
        self._proxy = programs.placed(task.proxy)
        self._loss_fn = _on_bytes(task)
        self._mean_gradients = jax.jit(
            functools.partial(rules.mean_gradients, self._loss_fn)
        )
        self._unaware: dict[int, label_distribution.Attack] = {}

    def adversary(self, spec: Spec, seed: int, sent: Params) -> Adversary:
        """Prepares for messages of clients under one defense.

        Args:
          spec: the defense of the clients.
          seed: of the adversary's draws.
          sent: the intercepted model.
        """
        run, readers = self._run, self._readers(sent)
        attacks: dict[str, label_distribution.Attack] = {}
        if "aware" in run.attackers:
            attacks["predictor"] = self._learn(spec, seed, sent, readers)
        if "unaware" in run.attackers:
            if not spec and attacks:  # it prepared the same
                self._unaware[seed] = attacks["predictor"]
            elif seed not in self._unaware or run.attack_round:
                self._unaware[seed] = self._learn(specs.NONE, seed, sent, readers)
            attacks["predictor_unaware"] = self._unaware[seed]
        distance = run.learning_rate * defended.steps(run)
        path = self._path(seed, sent, distance) if run.path_steps else None
        key = jax.random.fold_in(jax.random.key(seed), _POSTERIOR)
        return Adversary(attacks, readers, distance, path, key)

    def _path(self, seed: int, sent: Params, distance: float):
        steps = min(self._run.path_steps, defended.steps(self._run))
        chosen = simulated_path.Settings(path_steps=steps, messages=1)
        key = jax.random.fold_in(jax.random.key(seed), _PATH)

        def infer(messages):
            return simulated_path.infer_all(
                key, sent, messages, self._task.proxy, distance,
                loss_fn=self._loss_fn, settings=chosen,
            )  # fmt: skip

        return infer

    def _readers(self, sent: Params) -> label_distribution.Readers:
        gradients = parallel.gather(self._mean_gradients(sent, self._proxy))
        place = self._task.bias
        if place is None:
            return label_distribution.Readers(gradients, jnp.zeros(0, jnp.int32))
        bias = rules.span(sent, *place)
        return label_distribution.Readers(gradients, jnp.arange(bias.start, bias.stop))

    def _learn(self, spec: Spec, seed: int, sent: Params, readers):
        return label_distribution.fit(
            jax.random.fold_in(jax.random.key(seed), _ATTACK),
            sent,
            self._proxy,
            self._programs.of(spec),
            self._programs.numbers(spec),
            settings=settings(self._run),
            readers=readers,
            progress=self._progress,
        )


def predict(adversary: Adversary, messages: Array) -> dict[str, np.ndarray]:
    """Attack -> label distributions `[n, K]` of the senders of messages `[n, P]`."""
    attacks, (gradients, bias), distance, path, key = adversary
    found = {
        name: label_distribution.predict(attack, messages)
        for name, attack in attacks.items()
    }
    if "predictor" in attacks:
        learned = attacks["predictor"]
        found["fused"] = label_distribution.predict_fused(learned, messages)
        found["predictor_posterior"] = label_distribution.predict_posterior(
            key, learned, messages
        )
    if path is not None:
        found["simulated_path"] = path(messages)
    found["class_gradients"] = rules.class_gradients(messages, gradients)
    if len(bias):
        found["last_layer"] = rules.last_layer(
            messages[:, bias], gradients[:, bias], distance
        )
    mean = next(iter(attacks.values())).mean
    found["mean_distribution"] = jnp.tile(mean[None], (len(messages), 1))
    return jax.device_get({name: found[name] for name in SETTINGS if name in found})


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


def _on_bytes(task: Task):
    """The loss of rows as the pool holds them."""

    def loss_fn(params, x, y):
        return task.loss_fn(params, task.look_up(x), y)

    return loss_fn
