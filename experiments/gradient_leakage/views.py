"""What an adversary sees of a client; `adversary` has what it makes of that.

| method                | types 0 and 1: the message       | type 2: one example's gradient |
|-----------------------|----------------------------------|--------------------------------|
| `non_private`         | as it is                         | as it is                       |
| `fed_sdp`             | layers clipped, noise            | as it is                       |
| `fed_cdp`             | of clipped and noisy gradients   | layers clipped, noise          |
| `fed_cdp_decay`       | the same, clip of the round      | the same                       |
| `fed_cdp_per_batch`   | the same, noise on the mean only | layers clipped, NO noise       |
| `fed_cdp_recommended` | layers clipped to C / sqrt(M)    | two views                      |
| `dp_sgd`              | examples clipped to C as a whole | two views                      |
| `median`              | layers clipped to their median   | two views                      |
| `dssgd`               | largest coordinates              | as it is                       |
| `gaussian`, `laplace` | noise                            | noise                          |

`fed_cdp_per_batch` is what the code of Wei et al. (2021) does. With Fed-SDP at the
server, type 1 sees the message as it is.

`fed_cdp_recommended`, `dp_sgd` and `median` draw noise of deviation sigma C once, on the
sum over a batch. Who sees an example's gradient BEFORE the sum sees it without noise,
only clipped, as in `fed_cdp_per_batch`: the view `2 before the sum`. Their view `2` is
the release of a batch that holds this example alone, as `fed_cdp.sanitise_example`
documents it. A median of one clips nothing: what `median` shows before the sum is the
gradient as it is.

A message is the update over the learning rate: after one step, the gradient. What is
pruned is pruned last. Paper and code attack the first local step; more steps go beyond.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments import named_defenses
from experiments.gradient_leakage.settings import Config, Method
from fljax import losses
from fljax.attacks.inversion import points
from fljax.defenses import clipping, fed_cdp, noise, pruning
from fljax.types import Batch, Defense, Key, Params, Sender

MODES: dict[str, fed_cdp.Mode] = {
    "fed_cdp": "per_example",
    "fed_cdp_decay": "per_example",
    "fed_cdp_per_batch": "per_batch",
    "fed_cdp_recommended": "recommended",
}
_ON_THE_SUM = ("fed_cdp_recommended", "dp_sgd", "median")
_NOISY = {"gaussian": noise.gaussian, "laplace": noise.laplace}
_SHARE = 0.01  # B / N_i of Wei et al. 2021, which no number here depends on
_CLIENT = 0  # all clients are treated alike, in a round that is looked up before
_SENDER = Sender(np.int32(_CLIENT), np.int32(0))


class View(NamedTuple):
    """A method as one type of leakage shows it.

    Attributes:
      method: which.
      types: that see the same.
      example: whether it is one example's gradient.
      before_sum: whether it is seen before the sum that noise is drawn for.
    """

    method: Method
    types: tuple[int, ...]
    example: bool
    before_sum: bool = False

    @property
    def setting(self) -> str:
        """Name in results; the paper's where it is a column of Table VII."""
        types = "_".join(map(str, self.types))
        return f"leakage_type={types}{' before the sum' if self.before_sum else ''}"


def views(run: Config) -> list[View]:
    """All that is attacked, for every fraction pruned."""
    found = []
    for method in run.methods:
        messages = tuple(sorted(set(run.types) - {2}))
        apart = method == "fed_sdp" and run.where == "server"
        groups = [(t,) for t in messages] if apart else [messages]
        found += [View(method, group, False) for group in groups if group]
        if 2 in run.types:
            found.append(View(method, (2,), True))
            if method in _ON_THE_SUM:
                found.append(View(method, (2,), True, before_sum=True))
    return found


def kind(view: View) -> tuple[str, tuple[int, ...], bool, bool]:
    """Views of one kind have one `observe`: they differ in the clip at most."""
    name = MODES.get(view.method, view.method)
    if view.example and name in ("fed_sdp", "dssgd"):
        name = "non_private"
    apart = view.types if view.method == "fed_sdp" and not view.example else ()
    return name, apart, view.example, view.before_sum


def identity(run: Config, view: View, pruned: float):
    """Equal where the adversary sees and knows the same."""
    return kind(view), clip_of(run, view.method), pruned


def observe(
    run: Config, view: View, loss_fn: losses.LossFn, layers: int
) -> Callable[..., Params]:
    """What the adversary sees of ONE client.

    Returns:
      `(key, params, x [N, ...], y [N], clip [], pruned []) -> message`; consumes the
      key.
    """
    look = _example if view.example else _message
    see = look(run, view, loss_fn, layers)

    def seen(key: Key, params, x, y, clip, pruned):
        return pruning.prune(see(key, params, x, y, clip), pruned)

    return seen


def clip_of(run: Config, method: Method) -> float:
    """C, in the round in which the attack happens."""
    if method != "fed_cdp_decay":
        return run.clip
    first, last = run.decay
    clip = clipping.linear_decay(first, last, num_rounds=run.num_rounds)
    clipping.largest(clip, run.num_rounds)
    return float(clipping.at_round(clip, jnp.int32(run.round)))


def _example(run: Config, view: View, loss_fn: losses.LossFn, layers: int):
    method, gradient = view.method, points.gradient_of(loss_fn)
    sigma = 0.0 if view.before_sum else run.sigma
    alone = dataclasses.replace(run, batch_size=1, sigma=sigma)

    def see(key, params, x, y, clip):
        if method in _ON_THE_SUM:
            built = _defense(alone, method, loss_fn, layers, clip)
            return _slope(loss_fn, built, key, params, x[:1], y[:1])
        found = gradient(params, x[:1], y[:1])
        if method in MODES:
            return fed_cdp.sanitise_example(
                key,
                found,
                clip=clip,
                noise_scale=run.sigma,
                mode=MODES[method],
            )
        if method in _NOISY:
            encode = _NOISY[method](run.noise_scale).encode
            return encode(key, found, _SENDER)
        return found

    return see


def _message(run: Config, view: View, loss_fn: losses.LossFn, layers: int):
    """The update over the learning rate, as a sum of gradients: nothing is rounded."""
    size = run.batch_size

    def see(key, params, x, y, clip):
        built = _defense(run, view.method, loss_fn, layers, clip)

        def step(total, number):
            now = jax.tree.map(lambda p, t: p - run.rate * t, params, total)
            start = number % (len(y) // size) * size
            rows = [lax.dynamic_slice_in_dim(leaf, start, size) for leaf in (x, y)]
            step_key = jax.random.fold_in(key, number)
            found = _slope(loss_fn, built, step_key, now, *rows)
            return jax.tree.map(jnp.add, total, found), None

        total, _ = lax.scan(
            step, jax.tree.map(jnp.zeros_like, params), jnp.arange(run.steps)
        )
        seams = [built.encode, built.receive if 0 in view.types else None]
        for number, seam in enumerate(seams, run.steps):
            if seam is not None:
                delta = jax.tree.map(lambda leaf: run.rate * leaf, total)
                delta = seam(jax.random.fold_in(key, number), delta, _SENDER)
                total = jax.tree.map(lambda leaf: leaf / run.rate, delta)
        return total

    return see


def _slope(loss_fn: losses.LossFn, defense: Defense, key: Key, params, x, y) -> Params:
    """Of a step: the mean gradient, or what a defense puts in its place."""
    if defense.gradient is None:
        return points.gradient_of(loss_fn)(params, x, y)
    batch = Batch(x, y, jnp.ones(len(y), bool), jnp.int32(_CLIENT))
    return defense.gradient(key, params, batch)[0]


def _defense(run: Config, method: Method, loss_fn, layers: int, clip) -> Defense:
    mode = MODES.get(method, "per_example")
    name = "fed_cdp" if method in MODES else method.replace("non_private", "none")
    poisson = named_defenses.needs_poisson(name, mode)
    setting = named_defenses.Setting(
        loss_fn,
        layers,
        mode=mode,
        batches="poisson" if poisson else "fixed",
        sampling_rate=_SHARE,
        batch_size=run.batch_size,
        where=run.where,
    )
    number = {
        "median": run.sigma * clip,
        "dssgd": run.dssgd_fraction,
        "gaussian": run.noise_scale * run.rate,
        "laplace": run.noise_scale * run.rate,
    }.get(method, run.sigma)
    return named_defenses.make(name, setting, number, clip)
