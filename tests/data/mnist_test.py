import struct

import numpy as np
import pytest

from fljax.data import mnist
from fljax.data.fetch import File
from fljax.data.table import DataError, FileRecord


def idx(name, array):
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    content = bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()
    return File(FileRecord(name=name, sha256="", origin="local"), content)


def files(train=12, test=3, labels=None):
    rng = np.random.default_rng(0)

    def pair(which, count, num_labels):
        pixels = rng.integers(0, 256, (count, 28, 28), np.uint8)
        classes = rng.integers(0, 10, num_labels, np.uint8)
        return idx(f"{which}-images", pixels), idx(f"{which}-labels", classes)

    return [*pair("train", train, labels or train), *pair("t10k", test, test)]


def test_the_last_sixth_of_the_training_file_is_for_validation():
    given = files()
    found = mnist.from_files(given)
    assert [len(part.y) for part in (found.train, found.validation)] == [10, 2]
    assert found.test is not None and found.test.x.shape == (3, 28, 28, 1)
    pixels = np.concatenate([found.train.x, found.validation.x]).tobytes()
    assert pixels == given[0].content[16:]
    assert found.validation.y.tolist() == list(given[1].content[-2:])
    assert found.files[0].name == "train-images"


def test_another_number_of_labels_is_named():
    with pytest.raises(DataError, match="train-labels: 11 labels for the 12 images of"):
        mnist.from_files(files(labels=11))


def test_swapped_files_are_named():
    swapped = files()[::-1]
    with pytest.raises(DataError, match="t10k-labels: not an idx file of 3-dim"):
        mnist.from_files(swapped)
