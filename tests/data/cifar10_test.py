import io
import tarfile

import numpy as np
import pytest

from fljax import data
from fljax.data import cifar10
from fljax.data.fetch import File
from fljax.data.table import DataError, FileRecord

BATCHES = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]


def record(name):
    return FileRecord(name=name, sha256="", origin="local")


def batch(seed, count=3):
    """Images `[count, 32, 32, 3]`, labels, and the bytes of the binary version."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (count, 32, 32, 3), np.uint8)
    y = rng.integers(0, 10, count, np.uint8)
    rows = [
        bytes([label]) + pixels.transpose(2, 0, 1).tobytes()
        for pixels, label in zip(x, y)
    ]
    return x, y, b"".join(rows)


def archive(contents):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return File(record("cifar.tar.gz"), buffer.getvalue())


def test_the_official_archive_is_read_in_order():
    contents = {name: batch(i)[2] for i, name in enumerate(BATCHES)}
    readme = {"readme.html": b"<html></html>"}
    found = cifar10.from_archive(archive(readme | dict(reversed(contents.items()))))
    x = np.concatenate([batch(i)[0] for i in range(5)])
    y = np.concatenate([batch(i)[1] for i in range(5)])
    assert (found.name, found.classes[0], found.classes[9]) == (
        "cifar10",
        "airplane",
        "truck",
    )
    assert len(found.validation.y) == 3
    np.testing.assert_array_equal(
        np.concatenate([found.train.x, found.validation.x]), x
    )
    np.testing.assert_array_equal(
        np.concatenate([found.train.y, found.validation.y]), y
    )
    assert found.test is not None
    np.testing.assert_array_equal(found.test.x, batch(5)[0])


def test_an_absent_batch_is_named():
    contents = {name: batch(0)[2] for name in BATCHES if name != "data_batch_4.bin"}
    with pytest.raises(DataError, match="cifar.tar.gz: no .*/data_batch_4.bin in the"):
        cifar10.from_archive(archive(contents))


@pytest.mark.parametrize("content", [b"", batch(0)[2][:-1]], ids=["empty", "cut"])
def test_a_truncated_batch_is_one_line(content):
    contents = {name: batch(0)[2] for name in BATCHES} | {"test_batch.bin": content}
    with pytest.raises(DataError, match="test_batch.bin: .*a multiple of 3073"):
        cifar10.from_archive(archive(contents))


def arrays(labels=10):
    def npy(name, array):
        stream = io.BytesIO()
        np.save(stream, array)
        return File(record(name), stream.getvalue())

    x, y, _ = batch(0, 10)
    test_x, test_y, _ = batch(1, 2)
    return [
        npy("x.npy.xz", x),
        npy("y.npy", y[:labels]),
        npy("tx.npy.xz", test_x),
        npy("ty.npy", test_y),
    ]


def test_the_half_is_read_from_arrays_under_its_own_name():
    found = cifar10.from_arrays("cifar10_half", arrays())
    x, y, _ = batch(0, 10)
    assert found.name == "cifar10_half"
    np.testing.assert_array_equal(found.train.x, x[:8])
    np.testing.assert_array_equal(found.validation.y, y[8:])


def test_arrays_that_do_not_fit_are_named():
    with pytest.raises(DataError, match="x.npy.xz: 10 images with 9 labels"):
        cifar10.from_arrays("cifar10_half", arrays(labels=9))


def test_both_halves_follow_one_another():
    one, other = arrays(), arrays()
    found = cifar10.from_arrays("cifar10", [*one[:2], *other])
    x, y, _ = batch(0, 10)
    assert len(found.train.y) == 16 and len(found.test.y) == 2
    np.testing.assert_array_equal(found.train.x[10:], x[:6])
    np.testing.assert_array_equal(found.validation.y, y[6:])


def test_an_unknown_subset_is_one_line():
    with pytest.raises(
        data.DataError, match="subset='x' is not one of all, half, halves"
    ):
        data.load_images("cifar10", subset="x")
