"""MNIST: 70,000 handwritten digits of 28 x 28 pixels in the publisher's idx files.

LeCun et al., "Gradient-based learning applied to document recognition", 1998. The last
sixth of the training file, 10,000 images, is kept for validation, as in the code of Wei
et al., "Gradient-Leakage Resilient Federated Learning", 2021.
"""

from collections.abc import Sequence

from fljax.data.fetch import File, fetch
from fljax.data.idx import read_idx
from fljax.data.images import Images, Labelled, hold_out
from fljax.data.sources import MNIST
from fljax.data.table import DataError


def load_images(*, data_dir: str | None = None) -> Images:
    """Reads the four files: training images and labels, test images and labels.

    Args:
      data_dir: folder of local copies.

    Raises:
      DataError: a file is not as expected.
    """
    return from_files([fetch(source, data_dir) for source in MNIST])


def from_files(files: Sequence[File]) -> Images:
    """Images of four idx files in the order of `sources.MNIST`."""
    train, test = _read(*files[:2]), _read(*files[2:])
    kept, validation = hold_out(*train, len(train.x) // 6)
    return Images(
        name="mnist",
        classes=tuple("0123456789"),
        train=kept,
        validation=validation,
        test=hold_out(*test, 0)[0],
        files=tuple(file.record for file in files),
    )


def _read(images: File, labels: File) -> Labelled:
    x = read_idx(images.content, images.record.name, num_dims=3)
    y = read_idx(labels.content, labels.record.name, num_dims=1)
    if len(x) != len(y):
        raise DataError(
            f"{labels.record.name}: {len(y)} labels for the {len(x)} images of "
            f"{images.record.name}"
        )
    return Labelled(x[..., None], y)
