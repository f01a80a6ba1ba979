import numpy as np
import pytest

from fljax import data
from fljax.data.images import Images, Labelled, hold_out


def labelled(shape=(4, 3, 2, 1), *, labels=(0, 1, 2, 1), dtype=np.uint8, value=0):
    return Labelled(np.full(shape, value, dtype), np.array(labels, np.int32))


def images(**parts):
    given = {"train": labelled(), "validation": labelled(), "test": None} | parts
    return Images(name="some", classes=("a", "b", "c"), **given)


def test_pixels_become_floats_from_zero_to_one():
    found = images(white=16)
    assert found.shape == (3, 2, 1)
    unit = found.unit(np.array([0, 4, 16], np.uint8))
    np.testing.assert_array_equal(unit, np.array([0, 0.25, 1], np.float32))
    assert unit.dtype == np.float32


def test_the_last_images_are_held_out():
    x = np.arange(5, dtype=np.uint8).reshape(5, 1, 1, 1)
    kept, held = hold_out(x, np.arange(5, dtype=np.uint8), 2)
    assert (kept.y.tolist(), held.y.tolist()) == ([0, 1, 2], [3, 4])
    assert held.x.ravel().tolist() == [3, 4]
    assert kept.y.dtype == np.int32


BAD = {
    "no channels": ({"train": labelled((4, 3, 2))}, "training images: expected uint8"),
    "floats": ({"train": labelled(dtype=np.float32)}, "found float32"),
    "other sizes": (
        {"test": labelled((4, 3, 3, 1))},
        r"test images: .* \[4, 3, 3, 1\]",
    ),
    "too few labels": ({"train": labelled(labels=(0, 1))}, "4 images with 2 labels"),
    "none": ({"validation": labelled((0, 3, 2, 1), labels=())}, "0 images with 0"),
    "a class too many": (
        {"validation": labelled(labels=(0, 1, 2, 3))},
        "validation images: labels from 0 to 3, expected 0 to 2",
    ),
    "too bright": (
        {"train": labelled(value=17), "white": 16},
        "a pixel of 17, expected 0 to 16",
    ),
}


@pytest.mark.parametrize("parts, message", BAD.values(), ids=BAD)
def test_what_does_not_fit_together_is_one_line(parts, message):
    with pytest.raises(data.DataError, match=f"some: .*{message}") as error:
        images(**parts)
    assert "\n" not in str(error.value)


def test_the_digits_are_those_of_the_table():
    found, table = data.load_images("digits"), data.load("digits")
    assert (len(found.train.x), len(found.validation.x)) == (1438, 359)
    assert (found.shape, found.white, found.test) == ((8, 8, 1), 16, None)
    pixels = np.concatenate([found.train.x, found.validation.x])
    columns = table.frame.drop(columns="digit").to_numpy(np.float32)
    np.testing.assert_array_equal(found.unit(pixels).reshape(1797, 64), columns)
    labels = np.concatenate([found.train.y, found.validation.y])
    np.testing.assert_array_equal(labels, table.frame["digit"])
    assert found.files == table.files


SHARED = {
    "mnist": ("mnist", {}, "mnist", (28, 28, 1), 10, (50_000, 10_000, 10_000)),
    "cifar10": (
        "cifar10",
        {"subset": "half"},
        "cifar10_half",
        (32, 32, 3),
        10,
        (20_000, 5_000, 10_000),
    ),
    "lfw": ("lfw", {}, "lfw_deepfunneled", (32, 32, 3), 62, (2267, 756, 0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SHARED.values(), ids=SHARED)
def test_the_real_files_have_known_sizes(shared_data, case):
    name, options, reported, shape, classes, counts = case
    found = data.load_images(name, data_dir=shared_data, **options)
    assert (found.name, found.shape, len(found.classes)) == (reported, shape, classes)
    parts = (found.train, found.validation, found.test)
    assert tuple(0 if part is None else len(part.y) for part in parts) == counts
    assert set(found.train.y) == set(range(classes))
    # Neither black nor inverted nor of one channel.
    assert 20 < found.train.x.mean() < 140 and np.ptp(found.train.x) == 255
    assert {file.origin for file in found.files} == {"local"}
