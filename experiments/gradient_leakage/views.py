"""What an adversary sees of a client; `adversary` has what it makes of that.

| defense                    | types 0 and 1: the message       | type 2: one example's gradient |
|----------------------------|----------------------------------|--------------------------------|
| `none`                     | as it is                         | as it is                       |
| `fed_sdp`                  | layers clipped, noise            | as it is                       |
| `fed_cdp`                  | of clipped and noisy gradients   | layers clipped, noise          |
| the same, `decay_to`       | the same, clip of the round      | the same                       |
| the same, `per_batch`      | the same, noise on the mean only | layers clipped, NO noise       |
| the same, `recommended`    | layers clipped to C / sqrt(M)    | two views                      |
| `dp_sgd`                   | examples clipped to C as a whole | two views                      |
| `median`                   | layers clipped to their median   | two views                      |
| `dssgd`, `pruning`         | largest coordinates              | as it is                       |
| `norm_clipping`, `value_clipping` | scaled down; cut off     | as it is                       |
| `gaussian`, `laplace`      | noise                            | as it is                       |
| the same, `on=steps`       | of noisy gradients               | two views                      |

`per_batch` is what the code of Wei et al. (2021) does. With Fed-SDP at the server, type 1
sees the message as it is.

`recommended`, `dp_sgd`, `median` and whoever else says so (`Effects.noise`) draw noise once,
on the sum over a batch or its mean. Who sees an example's gradient BEFORE that sees it
without noise, only clipped, as with `per_batch`: the view `2 before the sum`. Their view
`2`, and that of any other defense of the local steps, is the release of a batch that holds
this example alone. A median of one clips nothing: what `median` shows before the sum is
the gradient as it is. Of a defense that does not say what it does there is the release
alone.

A message is the update over the learning rate: after one step, the gradient. What is
pruned by `--pruned` is pruned last. Paper and code attack the first local step; more steps
go beyond.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments import defense_options
from experiments.gradient_leakage.settings import Config
from fljax import losses
from fljax.attacks.inversion import points
from fljax.defenses import clipping, fed_cdp, pruning, specs
from fljax.defenses.definition import Setting
from fljax.defenses.parts import Part
from fljax.defenses.specs import Spec
from fljax.types import Batch, Defense, Key, Params, Sender

_SHARE = 0.01  # B / N_i of Wei et al. 2021, which no number here depends on
_CLIENT = 0  # all clients are treated alike, in a round that is looked up before
_SENDER = Sender(np.int32(_CLIENT), np.int32(0))


class View(NamedTuple):
    """A defense as one type of leakage shows it.

    Attributes:
      spec: which.
      types: that see the same.
      example: whether it is one example's gradient.
      before_sum: whether it is seen before the sum that noise is drawn for.
    """

    spec: Spec
    types: tuple[int, ...]
    example: bool
    before_sum: bool = False

    @property
    def method(self) -> str:
        """What the paper calls the defense."""
        return defense_options.short_name(self.spec)

    @property
    def shown(self) -> Spec:
        """What of the defense has been at work: on one example, that of the steps."""
        return _on_steps(self.spec) if self.example else self.spec

    @property
    def setting(self) -> str:
        """Name in results; the paper's where it is a column of Table VII."""
        types = "_".join(map(str, self.types))
        return f"leakage_type={types}{' before the sum' if self.before_sum else ''}"


def views(run: Config) -> list[View]:
    """All that is attacked, for every fraction pruned.

    Raises:
      ConfigError: for a defense that cannot be built.
    """
    found = []
    for spec in defense_options.parse_all(run.defense):
        _check(run, spec)
        if run.attacker == "aware":
            defense_options.warn_of_unknown(spec)
        messages = tuple(sorted(set(run.types) - {2}))
        apart = "receive" in specs.acts_on(spec)
        groups = [(t,) for t in messages] if apart else [messages]
        found += [View(spec, group, False) for group in groups if group]
        if 2 in run.types:
            found.append(View(spec, (2,), True))
            if _noise_on(_on_steps(spec)) == "sum":
                found.append(View(spec, (2,), True, before_sum=True))
    return found


def kind(view: View) -> tuple:
    """Views of one kind have one `observe`: they differ in the clip at most."""
    spec = view.shown
    apart = view.types if "receive" in specs.acts_on(spec) else ()
    names = ("clip", "decay_to")
    others = tuple(
        (part.name, *((n, v) for n, v in part.given if n not in names))
        for part in spec.parts
    )
    return others, apart, view.example, view.before_sum


def identity(run: Config, view: View, pruned: float) -> tuple:
    """Equal where the adversary sees and knows the same."""
    settings = tuple(clip for clip in clips(run, view.shown) if clip is not None)
    return kind(view), settings, pruned


def clips(run: Config, spec: Spec) -> tuple[float | None, ...]:
    """C of each part, in the round in which the attack happens."""
    found = []
    for part in spec.parts:
        clip = part.values.get("clip")
        if clip is not None:
            end = part.values.get("decay_to")
            decaying = clipping.decaying(clip, end, run.num_rounds)
            clipping.largest(decaying, run.num_rounds)
            clip = float(clipping.at_round(decaying, run.round))
        found.append(clip)
    return tuple(found)


def observe(
    run: Config, view: View, loss_fn: losses.LossFn, layers: int
) -> Callable[..., Params]:
    """What the adversary sees of ONE client.

    Returns:
      `(key, params, x [N, ...], y [N], clips, pruned []) -> message`, with the clip [] of
      each part of what is shown, None without; consumes the key.
    """
    look = _example if view.example else _message
    see = look(run, view, loss_fn, layers)

    def seen(key: Key, params, x, y, clips, pruned):
        return pruning.prune(see(key, params, x, y, clips), pruned)

    return seen


def _example(run: Config, view: View, loss_fn: losses.LossFn, layers: int):
    spec, gradient = view.shown, points.gradient_of(loss_fn)
    alone, drawn = dataclasses.replace(run, batch_size=1), _noise_on(spec)

    def see(key, params, x, y, clips):
        if not spec:
            return gradient(params, x[:1], y[:1])
        if view.before_sum:
            clip_fn = _clip_of_one(spec.parts[0], clips[0], layers)
            return clipping.clipped(gradient(params, x[:1], y[:1]), clip_fn)
        if drawn in ("example", "mean"):
            values = spec.parts[0].values
            return fed_cdp.sanitise_example(
                key,
                gradient(params, x[:1], y[:1]),
                clip=clips[0],
                noise_scale=values["sigma"],
                mode=values["mode"],
            )
        built = _bound(alone, spec, loss_fn, layers, clips)
        return _slope(loss_fn, built, key, params, x[:1], y[:1])

    return see


def _message(run: Config, view: View, loss_fn: losses.LossFn, layers: int):
    """The update over the learning rate, as a sum of gradients: nothing is rounded."""
    size = run.batch_size

    def see(key, params, x, y, clips):
        built = _bound(run, view.spec, loss_fn, layers, clips)

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


def _on_steps(spec: Spec) -> Spec:
    """The part that acts on local steps, if there is one."""
    parts = (part for part in spec.parts if "gradient" in specs.acts_on(Spec((part,))))
    return Spec(tuple(parts))


def _noise_on(spec: Spec) -> str:
    """What a defense of local steps draws its noise for, as far as it is known."""
    if not spec:
        return ""
    (part,) = spec.parts
    if part.name == "fed_cdp":
        modes = {"per_example": "example", "per_batch": "mean", "recommended": "sum"}
        return modes[part.values["mode"]]
    does = part.effects
    once = does is not None and does.noise in ("sums", "steps") and not does.each
    return "sum" if once else ""


def _clip_of_one(part: Part, clip: float | None, layers: int) -> clipping.ClipFn:
    """How the gradient of an example alone is clipped before noise is drawn."""
    does = part.effects
    assert does is not None
    most = does.clip if clip is None else clip
    if most is None or does.examples in ("", "median"):
        return clipping.total(np.inf)
    if does.examples == "total":
        return clipping.total(most)
    return clipping.per_layer(most / layers**0.5 if does.split else most)


def _check(run: Config, spec: Spec) -> None:
    with defense_options.naming(spec):
        _bound(run, spec, lambda params, x, y: jnp.zeros(()), 1, clips(run, spec))


def _bound(run: Config, spec: Spec, loss_fn, layers: int, clips) -> Defense:
    """A defense with the clips of one round."""
    now, settings = [], []
    for part, values, clip in zip(spec.parts, specs.numbers(spec), clips, strict=True):
        now.append(Part(part.name, tuple(v for v in part.given if v[0] != "decay_to")))
        values.pop("decay_to", None)
        if clip is not None:
            values["clip"] = clip
        settings.append(values)
    setting = Setting(
        loss_fn,
        layers,
        batches="poisson" if specs.needs_poisson(spec) else "fixed",
        sampling_rate=_SHARE,
        batch_size=run.batch_size,
    )
    return specs.bind(Spec(tuple(now)), setting, tuple(settings))
