"""DP-SGD of optax, of jax-privacy and of fljax, and what fljax does to messages."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax.contrib

from experiments.benchmarks.peers import canaries, epochs, training
from experiments.benchmarks.peers.training import Setting, Shipped
from fljax import privacy
from fljax.defenses import definition, specs
from fljax.privacy import Releases
from fljax.types import Batch, NoiseSpec, Sender

_DELTA = 1e-5


def ours(setting: Setting, text: str) -> Shipped:
    """A defense of this package.

    Args:
      setting: the training.
      text: of it; `{gradient}` and `{message}` are the median norms.
    """
    people, plan = setting.people, setting.plan
    spec = specs.parse(text.format(**setting.sizes._asdict()))
    poisson = specs.needs_poisson(spec)
    releases, own = _releases(setting), _setting(setting, poisson)
    numbers = privacy.numbers_for(spec, own, releases, _DELTA)
    defense = specs.bind(spec, own, numbers)
    shipped = Shipped(
        simulated=str(spec),
        delta=_DELTA,
        noise=defense.noise[0] if defense.noise else None,
        stated=lambda: next((p.values.get("epsilon") for p in spec.parts), None),
    )
    if defense.gradient is not None:
        slope = jax.jit(defense.gradient)

        def gradient(key, params, rows, mask):
            return slope(key, params, Batch(*rows, mask, np.int32(0), np.int32(0)))[0]

        drawn = epochs.poisson if poisson else epochs.shuffled
        batches = functools.partial(drawn, plan)
        shipped = shipped._replace(
            epoch=epochs.stepping(people, plan, gradient, batches),
            release=canaries.of_gradient(people, plan, gradient),
        )
    if defense.encode is not None:
        encode, key = jax.jit(defense.encode), jax.random.key(plan.seed)

        def message(sent, returned):
            delta = {name: sent[name] - returned[name] for name in sent}
            left = encode(key, delta, Sender(np.int32(0), np.int32(0)))
            return {name: np.asarray(sent[name] - left[name]) for name in sent}

        shipped = shipped._replace(message=message)
    return shipped


def optax_dp(setting: Setting, epsilon: float) -> Shipped:
    """`differentially_private_aggregate` on shuffled batches, as its users have them.

    optax has no accountant: sigma is what another one gives for Poisson batches.
    """
    people, plan, clip = setting.people, setting.plan, setting.sizes.gradient
    sigma = _sigma(setting, epsilon)
    each = jax.jit(
        jax.vmap(jax.grad(training.loss_fn(people.task)), in_axes=(None, 0, 0))
    )

    @jax.jit
    def aggregate(key, gradients):
        of = optax.contrib.differentially_private_aggregate(clip, sigma, key)
        return of.update(gradients, of.init(None))[0]

    def gradient(key, params, rows, mask):
        return aggregate(key, each(params, rows.x[mask], rows.y[mask]))

    batches = functools.partial(epochs.shuffled, plan)
    steps = plan.steps(len(people.clients[0].y))
    return Shipped(
        epoch=epochs.stepping(people, plan, gradient, batches),
        release=canaries.of_gradient(people, plan, gradient),
        noise=NoiseSpec(
            sigma,
            clip,
            1 / steps,
            "put a record without gradient in the place of one record",
            sampling="fixed",
        ),
        simulated=f"dp_sgd(clip={clip:.8g}, sigma={sigma:.8g})",
    )


def jax_privacy_dp(setting: Setting, epsilon: float) -> Shipped:
    """Its clipped gradient, noise, Poisson batches and calibration of the noise."""
    from jax_privacy import accounting, batch_selection, clipping, noise_addition

    people, plan, clip = setting.people, setting.plan, setting.sizes.gradient
    size = len(people.clients[0].y)
    steps, rate = plan.steps(size), plan.batch_size / size
    num_updates = steps * plan.rounds
    accountant = accounting.analysis.DpsgdTrainingAccountant(
        accounting.accountants.PldAccountantConfig()
    )
    told = {"batch_size": plan.batch_size, "num_samples": size}
    sigma = accounting.calibrate.calibrate_noise_multiplier(
        target_epsilon=epsilon, accountant=accountant, num_updates=num_updates,
        batch_sizes=plan.batch_size, num_samples=size, target_delta=_DELTA,
    )  # fmt: skip
    summed = clipping.clipped_grad(
        training.loss_fn(people.task), l2_clip_norm=clip, batch_argnums=(1, 2),
        keep_batch_dim=False, normalize_by=plan.batch_size,
    )  # fmt: skip
    deviation = sigma * summed.sensitivity()

    @jax.jit
    def slope(key, params, x, y, mask):
        found = summed(params, x, y, is_padding_example=~mask)
        noise = noise_addition.gaussian_privatizer(stddev=deviation, prng_key=key)
        return noise.update(found, noise.init(params))[0]

    def gradient(key, params, rows, mask):
        return slope(key, params, *rows, mask)

    def batches(rng, n):
        chosen = batch_selection.CyclicPoissonSampling(rate, iterations=steps)
        for rows in chosen.batch_iterator(n, rng):
            yield np.isin(np.arange(n), rows)

    params = accounting.analysis.DpParams(noise_multipliers=sigma, delta=_DELTA, **told)
    return Shipped(
        epoch=epochs.stepping(people, plan, gradient, batches),
        release=canaries.of_gradient(people, plan, gradient),
        stated=lambda: accountant.compute_epsilon(num_updates, params),
        noise=NoiseSpec(sigma, clip, rate, "add or remove one record"),
        simulated=f"dp_sgd(clip={clip:.8g}, sigma={sigma:.8g})",
    )


def _releases(setting: Setting) -> Releases:
    plan = setting.plan
    steps = plan.steps(len(setting.people.clients[0].y))
    return Releases(plan.rounds * steps, plan.rounds)


def _setting(setting: Setting, poisson: bool) -> definition.Setting:
    return definition.Setting.of_clients(
        training.loss_fn(setting.people.task), 4, len(setting.people.clients[0].y),
        setting.plan.batch_size, poisson=poisson, num_rounds=setting.plan.rounds,
    )  # fmt: skip


def _sigma(setting: Setting, epsilon: float) -> float:
    """That keeps a budget over Poisson batches."""
    spec = specs.parse(f"dp_sgd(clip=1, epsilon={epsilon})")
    own = _setting(setting, poisson=True)
    (numbers,) = privacy.numbers_for(spec, own, _releases(setting), _DELTA)
    return float(jnp.max(numbers["sigma"]))
