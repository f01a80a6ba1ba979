"""Decodes every attacked client with every mapping, from its messages alone."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.lmra.settings import Config, Method, cases
from experiments.lmra.task import Task
from fljax import parallel
from fljax.attacks import attribute, streams
from fljax.attacks.reconstruction import decoding
from fljax.attacks.reconstruction.decoding import Adam, Decoded, Messages
from fljax.types import Features, Known, Params


def decode(run: Config, task: Task, messages: Messages, method: Method) -> Decoded:
    """Local optima of the attacked clients; one compiled program.

    The regression and the simulated client work in float64, whose noise-free messages
    span many orders; the MLP in float32.

    Args:
      run: which clients were attacked how often, and how.
      task: what they train.
      messages: leaves `[cases, seeds, A, R, ...]` of the attacked clients.
      method: the mapping.

    Returns:
      Leaves `[cases, seeds, A, ...]` as NumPy arrays.
    """
    shape = messages.mask.shape[:3]
    messages = jax.tree.map(
        lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[3:]), messages
    )
    count = len(messages.mask)
    seeds = np.asarray(run.seeds, np.uint32)[:, None]
    seeds, clients = (
        np.broadcast_to(each, shape).reshape(-1)
        for each in (seeds, np.arange(shape[2], dtype=np.uint32))
    )
    steps = np.array([case.local_steps for case in cases(run)])
    steps = np.repeat(steps, count // len(steps))
    wide = method != "mlp"
    if wide:
        messages = messages._replace(
            sent=messages.sent.astype(np.float64),
            delta=messages.delta.astype(np.float64),
        )
    items = clients, seeds, steps, messages
    work = _METHODS[method](run, task)
    over = parallel.mesh()

    def all_items(items):
        return parallel.map_items(lambda item, _: work(*item), items, 0, over)

    with jax.enable_x64(wide):
        found = jax.tree.map(np.asarray, jax.jit(all_items)(items))
    return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), found)


def infer_attribute(task: Task, params: Params, known: Known) -> jax.Array:
    """`[n]` candidates that explain the known columns of ONE client best, by a model."""
    return attribute.model_based(task.loss_fn, params, known, task.candidates).index


def _mlp(run: Config, task: Task):
    mapping = decoding.mlp(task.num_inputs + 1, run.units)

    def work(client, seed, steps, messages: Messages) -> Decoded:
        del steps
        return decoding.learned(
            streams.key(seed, streams.DECODING, client),
            messages,
            mapping,
            fit=Adam(run.fit_rate, run.fit_iterations),
            decode=Adam(run.decode_rate, run.decode_iterations),
            scaling=run.scaling,
            rcond=run.rcond,
        )

    return work


def _affine(run: Config, task: Task):
    del task

    def work(client, seed, steps, messages: Messages) -> Decoded:
        del client, seed, steps
        return decoding.affine(messages, rcond=run.rcond)

    return work


def _simulated(run: Config, task: Task):
    unravel = ravel_pytree(task.model.init(jax.random.key(0)))[1]

    def loss(params, x, y):
        codes = jnp.zeros((0,), jnp.int32)
        return task.loss_fn(params, Features(x, codes), y)

    settings = decoding.Settings(
        iterations=run.iterations,
        ensemble_size=run.ensemble_size,
        average=run.average,
        floor=run.floor,
        damping=run.damping,
    )

    def work(client, seed, steps, messages: Messages) -> Decoded:
        simulation = decoding.simulated_client(
            loss,
            unravel,
            task.num_inputs,
            rate=run.learning_rate,
            steps=steps,
            most_steps=max(run.local_steps),
            num_rows=run.rows,
            spread=run.spread,
            shared_spread=run.shared_spread,
            slope=run.slope,
        )
        return decoding.simulated(
            streams.key(seed, streams.DECODING, client),
            messages,
            simulation,
            settings=settings,
            rcond=run.rcond,
        )

    return work


_METHODS = {"mlp": _mlp, "affine": _affine, "simulated": _simulated}
