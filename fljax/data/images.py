"""Images of one data set: what every `load_images` returns.

Pixels stay the bytes of the files, a quarter of the memory of floats; models and
attacks want `Images.unit` of the rows that they use.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from fljax.data.table import DataError, FileRecord


class Labelled(NamedTuple):
    """Images and their classes.

    Attributes:
      x: `[N, h, w, channels]` uint8.
      y: `[N]` int32 in 0 to K - 1.
    """

    x: np.ndarray
    y: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Images:
    """One image data set; checked at construction.

    Attributes:
      name: the name that results are reported under.
      classes: name of each class, `K` of them.
      train: training images in the order of the files.
      validation: images for choosing hyper-parameters.
      test: the publisher's test images, or None where there are none.
      white: the largest value that a pixel can have.
      files: what was read.

    Raises:
      DataError: shapes, types or classes do not fit together.
    """

    name: str
    classes: tuple[str, ...]
    train: Labelled
    validation: Labelled
    test: Labelled | None = None
    white: int = 255
    files: tuple[FileRecord, ...] = ()

    def __post_init__(self) -> None:
        parts = {"training": self.train, "validation": self.validation}
        if self.test is not None:
            parts["test"] = self.test
        for part, images in parts.items():
            _check(f"{self.name}: {part} images", images, self)

    @property
    def shape(self) -> tuple[int, int, int]:
        """`(h, w, channels)` of every image."""
        height, width, channels = self.train.x.shape[1:]
        return height, width, channels

    def unit(self, x: np.ndarray) -> np.ndarray:
        """Pixels as float32 from 0 to 1, for `x` of any shape."""
        return np.asarray(x, np.float32) / np.float32(self.white)


def hold_out(x: np.ndarray, y: np.ndarray, count: int) -> tuple[Labelled, Labelled]:
    """All but the last `count` images, and those; classes become int32."""
    y = y.astype(np.int32)
    kept = len(x) - count
    return Labelled(x[:kept], y[:kept]), Labelled(x[kept:], y[kept:])


def _check(what: str, images: Labelled, whole: Images) -> None:
    x, y = images
    if x.ndim != 4 or x.dtype != np.uint8 or x.shape[1:] != whole.train.x.shape[1:]:
        raise DataError(
            f"{what}: expected uint8 [N, h, w, channels] of one size, found {x.dtype} "
            f"{list(x.shape)}"
        )
    if y.shape != x.shape[:1] or not len(y):
        raise DataError(f"{what}: {len(x)} images with {len(y)} labels")
    if x.max() > whole.white:
        raise DataError(f"{what}: a pixel of {x.max()}, expected 0 to {whole.white}")
    if y.min() < 0 or y.max() >= len(whole.classes):
        raise DataError(
            f"{what}: labels from {y.min()} to {y.max()}, expected 0 to "
            f"{len(whole.classes) - 1}"
        )
