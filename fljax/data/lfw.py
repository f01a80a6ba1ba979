"""Labeled Faces in the Wild: people with many photographs, 32 x 32 pixels in colour.

Huang et al., 2007. Crop, size and order are those of Wei et al., "A Framework for
Evaluating Client Privacy Leakages in Federated Learning" (CPL), 2020: rows and columns
61 to 188 of the 250, scaled to a quarter with Pillow's default filter, the order of
scikit-learn's `fetch_lfw_people` (sorted by person, then shuffled with
`RandomState(42)`), the last quarter for validation. Wei et al., "Gradient-Leakage
Resilient Federated Learning", 2021, have the 62 people with at least 20 images: 2267
and 756.

`alignment="deepfunneled"`, whose results carry that name, is other pixels of the same
photographs than the `funneled` ones that `fetch_lfw_people` loads by default.
"""

import io
import re
from collections import defaultdict

import numpy as np
from PIL import Image

from fljax.data import archive
from fljax.data.fetch import File, fetch
from fljax.data.images import Images, hold_out
from fljax.data.sources import LFW_DEEPFUNNELED, LFW_FUNNELED, LFW_MIN20
from fljax.data.table import DataError

_SOURCES = {"deepfunneled": LFW_DEEPFUNNELED, "funneled": LFW_FUNNELED}
_SIZE = (250, 250)
_CROP = (61, 61, 189, 189)
_SCALED = (32, 32)
# lfw-deepfunneled/Tony_Blair/Tony_Blair_0001.jpg; names may hold any letters.
_PHOTOGRAPH = re.compile(r"[^/]+/([^/]+)/\1_\d{4}\.jpg")


def load_images(
    *,
    data_dir: str | None = None,
    alignment: str = "deepfunneled",
    min_images: int = 20,
) -> Images:
    """Reads the archive of one alignment.

    Args:
      data_dir: folder of local copies.
      alignment: `deepfunneled`, or `funneled`.
      min_images: photographs that a person needs to be among the classes: 20 in the
        FL paper, 14 in CPL.

    Raises:
      DataError: an option is out of range or the archive is not as expected.
    """
    if alignment not in _SOURCES:
        raise DataError(f"lfw: {alignment=} is not one of {', '.join(_SOURCES)}")
    file = fetch(_SOURCES[alignment], data_dir)
    if file.record.name == LFW_MIN20 and min_images < 20:
        raise DataError(f"lfw: {LFW_MIN20} lacks people for {min_images=}, below 20")
    name = "lfw" if alignment == "funneled" else f"lfw_{alignment}"
    return from_archive(file, name=name, min_images=min_images)


def from_archive(file: File, *, name: str, min_images: int) -> Images:
    """Images of a tar archive with one folder of photographs per person."""
    if min_images < 1:
        raise DataError(f"lfw: {min_images=} must be at least 1")
    photographs: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    for path, content in archive.tar_members(file.content, file.record.name):
        if found := _PHOTOGRAPH.fullmatch(path):
            photographs[found[1]].append((path, content))
    people = sorted(p for p, owned in photographs.items() if len(owned) >= min_images)
    if len(people) < 2:
        raise DataError(
            f"{file.record.name}: {len(people)} people with {min_images} or more "
            "photographs, expected at least 2"
        )
    x = [_decode(*each) for p in people for each in sorted(photographs[p])]
    y = np.repeat(np.arange(len(people)), [len(photographs[p]) for p in people])
    order = np.arange(len(x))
    np.random.RandomState(42).shuffle(order)
    kept, validation = hold_out(np.stack(x)[order], y[order], -(-len(x) // 4))
    return Images(
        name=name,
        classes=tuple(person.replace("_", " ") for person in people),
        train=kept,
        validation=validation,
        files=(file.record,),
    )


def _decode(name: str, content: bytes) -> np.ndarray:
    """Cropped and scaled pixels `[32, 32, 3]` uint8 of one JPEG file."""
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
            if image.size != _SIZE:
                raise DataError(f"{name}: {image.size} pixels, expected {_SIZE}")
            scaled = image.convert("RGB").crop(_CROP).resize(_SCALED)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{name}: not a readable JPEG file ({reason})") from error
    return np.asarray(scaled)
