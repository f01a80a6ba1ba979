"""Sound steps keep what is stated; every seeded mistake proves more."""

import jax
import numpy as np
import pytest

from fljax import privacy
from fljax.privacy import exact

_CLIP, _SIGMA, _WIDTH, _ROWS, _DELTA = 1.0, 1.5, 4, 8, 0.1
_OTHERS = np.random.default_rng(0).normal(size=(_ROWS, _WIDTH))
_OTHERS /= np.linalg.norm(_OTHERS, axis=1, keepdims=True)
_CANARY = np.full(_WIDTH, _WIDTH**-0.5)


def _sum(present):
    return _OTHERS.sum(axis=0) + present * _CANARY


def _noise(rng, scale=_SIGMA * _CLIP):
    return scale * rng.normal(size=_WIDTH)


def _sound(number, present):
    return _sum(present) + _noise(np.random.default_rng(number))


def _null(number, present):
    return _sound(number, False)


def _on_the_mean(number, present):
    return _sum(present) / _ROWS + _noise(np.random.default_rng(number)) / _ROWS**2


def _same_key_of_clients(number, present):
    first, second = (np.random.default_rng(number) for _ in range(2))
    return [_sum(present) + _noise(first), _OTHERS.sum(axis=0) + _noise(second)]


def _same_key_of_rounds(number, present):
    """A canary that is in the first of two rounds."""
    sums = _sum(present), _OTHERS.sum(axis=0)
    return [each + _noise(np.random.default_rng(number)) for each in sums]


def _per_layer(number, present):
    """Each of four arrays clipped to C: the canary's norm is 2 C."""
    total = _OTHERS.sum(axis=0) + present * _CLIP * np.ones(_WIDTH)
    return total + _noise(np.random.default_rng(number))


def _realised_batch(number, present):
    """One other row: the noise of a mean is half as large with the canary."""
    rows = 1 + present
    return (_OTHERS[0] + present * _CANARY) / rows + _noise(
        np.random.default_rng(number), 0.1 * _SIGMA * _CLIP * rows
    )


def _fixed_batches(number, present):
    """Ten disjoint batches: the canary is in the one that is seen here."""
    return _sum(present) + _noise(np.random.default_rng(number), 0.7 * _CLIP)


def _unclipped_term(number, present):
    statistics = (_OTHERS.sum(axis=0) + 5 * present * _CANARY) / 2
    return _sound(number, present) + statistics


def _promise(sigma=_SIGMA, rate=1.0, steps=1):
    return privacy.epsilon(sigma, rate, steps, _DELTA, accountant="pld")


_ONE = _promise()
_MISTAKES = {
    "noise on the mean": (_on_the_mean, 1, _ONE),
    "the same key for two clients": (_same_key_of_clients, 1, _ONE),
    "the same key for two rounds": (_same_key_of_rounds, 1, _promise(steps=2)),
    "a clip per layer taken for a whole one": (_per_layer, 1, _ONE),
    "noise that scales with the realised batch": (_realised_batch, 1, _ONE),
    "fixed batches accounted as Poisson": (
        _fixed_batches, 1, _promise(0.7, rate=0.1, steps=10),
    ),
    "one round's epsilon stated for all": (_sound, 6, _ONE),
    "noise after an unclipped term": (_unclipped_term, 1, _ONE),
}  # fmt: skip


@pytest.mark.parametrize("name", _MISTAKES)
def test_a_seeded_mistake_proves_more_than_is_stated(name):
    step, rounds, stated = _MISTAKES[name]
    found = privacy.audit_step(
        step,
        delta=_DELTA,
        stated=stated,
        rounds=rounds,
        draws=1600 // rounds + 600,
        traced=False,
    )
    assert found.crossed, str(found)
    assert "CROSSED" in str(found)


def test_a_sound_step_comes_near_what_is_stated_and_keeps_it():
    def step(number, present):
        return _sum(present) + _noise(np.random.default_rng(number), 0.5 * _CLIP)

    stated = _promise(0.5)
    found = privacy.audit_step(
        step, delta=_DELTA, stated=stated, draws=4000, traced=False
    )
    assert 0.5 * stated < found.audited.epsilon <= stated
    assert not found.crossed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:step. .* at most")
@pytest.mark.parametrize("stated", [0.0, 1.0, 2.0, 4.0])
def test_false_alarms_are_no_more_than_their_share_of_500_audits(stated):
    """5 % of 500, and three deviations more."""
    sigma = 0.0
    if stated:
        sigma = privacy.noise_multiplier_for(stated, _DELTA, 1.0, 1, accountant="pld")

    def step(number, present):
        rng = np.random.default_rng(number)
        if not stated:
            return _null(number, present)
        return _sum(present) + _noise(rng, sigma * _CLIP)

    crossed = 0
    for seed in range(500):
        found = privacy.audit_step(
            step, delta=_DELTA, stated=stated, draws=400, seed=seed, traced=False
        )
        crossed += found.crossed
    assert crossed <= 25 + 3 * (500 * 0.05 * 0.95) ** 0.5


def test_what_so_many_runs_cannot_prove_is_said():
    def bare(number, present):
        return np.ones(2) * present

    about = {"delta": 1e-5, "draws": 600, "traced": False}
    with pytest.warns(
        UserWarning, match=r"prove an epsilon of 4\.\d+ at most, stated is 8"
    ):
        found = privacy.audit_step(bare, stated=8.0, **about)
    assert not found.crossed and 3.5 < found.audited.epsilon <= found.most < 4.5
    assert str(found).endswith(f"of 1 steps, which prove {found.most:.3g} at most)")
    assert privacy.audit_step(bare, stated=2.0, **about).crossed


def test_a_step_that_jax_can_trace_is_run_in_one_program():
    def step(key, present):
        return present * jax.numpy.ones(2) + jax.random.normal(key, (2,))

    found = privacy.audit_step(step, delta=_DELTA, draws=1000)
    truth = exact.gaussian(2**-0.5, [1], [1.0], _DELTA)
    assert 0.3 < found.audited.epsilon <= truth


def test_numbers_out_of_range():
    with pytest.raises(ValueError, match="expected draws >= 200"):
        privacy.audit_step(_sound, delta=_DELTA, draws=10, traced=False)
    with pytest.raises(ValueError, match="finite outputs"):
        privacy.audit_step(lambda n, p: [np.nan], delta=_DELTA, traced=False)
    with pytest.raises(ValueError, match="expected outputs, got no number"):
        privacy.audit_step(lambda n, p: (), delta=_DELTA, traced=False)
    for stated in (-1.0, np.nan):
        with pytest.raises(
            ValueError, match="stated: expected an epsilon of 0 or more"
        ):
            privacy.audit_step(_sound, delta=_DELTA, stated=stated, traced=False)


@pytest.mark.parametrize("traced", [True, False])
def test_the_imaginary_part_of_an_output_is_seen(traced):
    def step(key, present):
        number = key if traced else jax.random.key(key % 2**32)
        return 1j * (3.0 * present + jax.random.normal(number, ()))

    draws = 400 if traced else 200
    found = privacy.audit_step(step, delta=_DELTA, draws=draws, traced=traced)
    assert found.audited.auc > 0.9


def test_a_model_of_many_numbers_needs_no_matrix_of_them():
    width = 40_000  # of whose squares 12 GB would be a matrix

    def step(number, present):
        rng = np.random.default_rng(number)
        noise = rng.standard_normal(width, dtype=np.float32)
        noise[:4] += 40 * present
        return noise

    with pytest.warns(UserWarning, match=r"50 runs hardly teach how 40,000 numbers"):
        found = privacy.audit_step(step, delta=_DELTA, draws=200, traced=False)
    assert found.audited.epsilon > 0.5
