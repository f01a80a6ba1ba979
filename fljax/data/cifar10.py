"""CIFAR-10: 60,000 colour photographs of 32 x 32 pixels, ten classes.

Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009. The last
fifth of the training images is kept for validation, as Wei et al., "Gradient-Leakage
Resilient Federated Learning", 2021, have 40,000 and 10,000 of them.

`subset="half"` reads 25,000 of the training images, 2,500 of each class, and all test
images from arrays; its results are reported under another name. `subset="halves"` reads
all training images from the arrays of both halves, in another order than the
publisher's, so that other ones are kept for validation.
"""

import numpy as np

from fljax.data import archive
from fljax.data.fetch import File, fetch
from fljax.data.idx import read_npy
from fljax.data.images import Images, Labelled, hold_out
from fljax.data.sources import CIFAR10, CIFAR10_HALVES, CIFAR10_TEST
from fljax.data.table import DataError, FileRecord

_CLASSES = "airplane automobile bird cat deer dog frog horse ship truck"
_FOLDER = "cifar-10-batches-bin"
_SHAPE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
_ARRAYS = {  # subset -> name of its results, and what is read
    "half": ("cifar10_half", CIFAR10_HALVES[:1]),
    "halves": ("cifar10", CIFAR10_HALVES),
}


def load_images(*, data_dir: str | None = None, subset: str = "all") -> Images:
    """Reads the publisher's binary archive, or the arrays of one half or of both.

    Args:
      data_dir: folder of local copies.
      subset: `all`, `half` of the training images, or both `halves`.

    Raises:
      DataError: a file is not as expected.
    """
    if subset == "all":
        return from_archive(fetch(CIFAR10, data_dir))
    if subset not in _ARRAYS:
        raise DataError(f"cifar10: {subset=} is not one of all, {', '.join(_ARRAYS)}")
    name, halves = _ARRAYS[subset]
    sources = [source for half in halves for source in half]
    return from_arrays(name, [fetch(s, data_dir) for s in (*sources, *CIFAR10_TEST)])


def from_archive(file: File) -> Images:
    """Images of the binary version: `data_batch_1` to `5` and `test_batch`."""
    name = file.record.name
    batches = dict(archive.tar_members(file.content, name))

    def batch(which: str) -> Labelled:
        path = f"{_FOLDER}/{which}.bin"
        if path not in batches:
            raise DataError(f"{name}: no {path} in the archive")
        return read_batch(batches[path], f"{name}/{path}")

    parts = [batch(f"data_batch_{number}") for number in range(1, 6)]
    train = Labelled(*(np.concatenate(arrays) for arrays in zip(*parts)))
    return _images("cifar10", train, batch("test_batch"), (file.record,))


def read_batch(content: bytes, name: str) -> Labelled:
    """Images of one binary batch: a label, then red, green and blue planes by rows."""
    if not content or len(content) % _RECORD:
        raise DataError(
            f"{name}: {len(content)} bytes, expected a multiple of {_RECORD}"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    planes = records[:, 1:].reshape(-1, *_SHAPE)
    return Labelled(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0])


def from_arrays(name: str, files: list[File]) -> Images:
    """Images of npy files: images and labels of one half or both, then of the test."""
    arrays = [read_npy(file.content, file.record.name) for file in files]
    records = tuple(file.record for file in files)
    for images, labels, record in zip(arrays[::2], arrays[1::2], records[::2]):
        if len(images) != len(labels):
            raise DataError(
                f"{record.name}: {len(images)} images with {len(labels)} labels"
            )
    parts = arrays[:-2:2], arrays[1:-2:2]
    train = Labelled(*map(np.concatenate, parts))
    return _images(name, train, Labelled(*arrays[-2:]), records)


def _images(
    name: str, train: Labelled, test: Labelled, files: tuple[FileRecord, ...]
) -> Images:
    kept, validation = hold_out(*train, len(train.x) // 5)
    return Images(
        name=name,
        classes=tuple(_CLASSES.split()),
        train=kept,
        validation=validation,
        test=hold_out(*test, 0)[0],
        files=files,
    )
