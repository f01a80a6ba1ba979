"""Distances of images, and which reconstruction stands for which example."""

import numpy as np
import pytest

from fljax import image_metrics

RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(size=(3, 16, 14, 2))


def test_errors_of_one_number_by_hand():
    truth, guess = np.zeros((2, 2)), np.array([[0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(image_metrics.mse(guess, truth), [0.125, 0])
    np.testing.assert_allclose(image_metrics.rmse(guess, truth), [0.125**0.5, 0])
    found = image_metrics.psnr(guess, truth, white=2.0)
    np.testing.assert_allclose(found, [10 * np.log10(32), np.inf])


def test_an_image_is_like_itself_and_like_nothing_else():
    np.testing.assert_allclose(image_metrics.ssim(IMAGES, IMAGES), 1)
    other = image_metrics.ssim(IMAGES[::-1], IMAGES)
    assert np.abs(other[[0, 2]]).max() < 0.2
    np.testing.assert_allclose(
        image_metrics.ssim(IMAGES, IMAGES[::-1]), other, rtol=1e-12
    )


def test_structural_similarity_of_constant_images_is_that_of_their_means():
    a, b = np.full((1, 12, 12, 1), 0.2), np.full((1, 12, 12, 1), 0.6)
    expected = (2 * 0.2 * 0.6 + 1e-4) / (0.2**2 + 0.6**2 + 1e-4)
    np.testing.assert_allclose(image_metrics.ssim(a, b), expected, rtol=1e-9)


@pytest.mark.parametrize("side", [11, 8], ids=["whole window", "cut window"])
def test_structural_similarity_is_the_written_out_formula(side):
    a, b = RNG.uniform(size=(2, side, side))
    width = 11 if side == 11 else 7
    offsets = np.arange(width) - width // 2
    line = np.exp(-0.5 * (offsets / 1.5) ** 2)
    window = np.outer(line, line) / line.sum() ** 2
    values = []
    for row in range(side - width + 1):
        for column in range(side - width + 1):
            part = slice(row, row + width), slice(column, column + width)
            p, q = a[part], b[part]
            mean_p, mean_q = (window * p).sum(), (window * q).sum()
            var_p = (window * (p - mean_p) ** 2).sum()
            var_q = (window * (q - mean_q) ** 2).sum()
            common = (window * (p - mean_p) * (q - mean_q)).sum()
            top = (2 * mean_p * mean_q + 1e-4) * (2 * common + 9e-4)
            values.append(top / (mean_p**2 + mean_q**2 + 1e-4) / (var_p + var_q + 9e-4))
    found = image_metrics.ssim(a[None, ..., None], b[None, ..., None])
    np.testing.assert_allclose(found, [np.mean(values)], rtol=1e-9)


def test_more_noise_is_less_alike():
    noise = RNG.normal(size=IMAGES.shape)
    near, far = (image_metrics.ssim(IMAGES + s * noise, IMAGES) for s in (0.05, 0.3))
    assert (far < near).all() and (near < 1).all()


def test_the_assignment_undoes_a_permutation():
    order = np.array([2, 0, 1])
    found = image_metrics.assign(IMAGES[order] + 0.01, IMAGES)
    np.testing.assert_array_equal(order[found], np.arange(3))


def test_the_assignment_leaves_nonsense_for_last():
    guess = np.stack([np.full_like(IMAGES[0], np.nan), IMAGES[0], IMAGES[1]])
    found = image_metrics.assign(guess, IMAGES)
    np.testing.assert_array_equal(found, [1, 2, 0])


def test_success_is_the_first_entry_with_every_example_close():
    far = IMAGES + 0.5
    half = np.concatenate([IMAGES[:2], far[2:]])
    path = [far, half, IMAGES[::-1] + 0.005, IMAGES]
    assert image_metrics.success(path, IMAGES, 0.01) == 3
    assert image_metrics.success(path, IMAGES, 0.001) == 4
    assert image_metrics.success(path, IMAGES, 1e-4, image_metrics.mse) == 3
    assert np.isnan(image_metrics.success(path[:2], IMAGES, 0.01))


@pytest.mark.parametrize("metric", ["mse", "ssim", "assign"])
def test_other_shapes_are_refused(metric):
    with pytest.raises(ValueError, match="expected .* examples"):
        getattr(image_metrics, metric)(IMAGES[:2], IMAGES)


def test_structural_similarity_needs_images():
    with pytest.raises(ValueError, match="h, w, channels"):
        image_metrics.ssim(np.zeros((2, 8)), np.zeros((2, 8)))
