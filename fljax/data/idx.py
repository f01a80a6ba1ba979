"""The idx and npy formats: one array of bytes, read without trusting its header."""

import math
import re
from collections.abc import Sequence

import numpy as np

from fljax.data.table import DataError

_UNSIGNED_BYTES = 8
# NumPy's own reader evaluates the header, and fails in many ways on a broken one.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00(..)"
    rb"\{'descr': '\|u1', 'fortran_order': False, 'shape': \(([\d, ]{0,99})\), \} *\n",
    re.DOTALL,
)


def read_idx(content: bytes, name: str, *, num_dims: int) -> np.ndarray:
    """Array of an idx file, the format of MNIST: `>HBB` magic, `>I` sizes, bytes.

    Args:
      content: the file.
      name: what errors call it.
      num_dims: dimensions expected, 3 for images and 1 for labels.

    Returns:
      uint8 array of `num_dims` dimensions; read-only.

    Raises:
      DataError: the magic number is another one, or sizes and length disagree.
    """
    magic = bytes([0, 0, _UNSIGNED_BYTES, num_dims])
    if content[:4] != magic:
        raise DataError(
            f"{name}: not an idx file of {num_dims}-dimensional bytes, it starts with "
            f"{content[:4].hex() or 'nothing'} instead of {magic.hex()}"
        )
    start = 4 + 4 * num_dims
    if len(content) < start:
        raise DataError(f"{name}: truncated inside its header")
    sizes = np.frombuffer(content, ">u4", num_dims, 4).tolist()
    return _shaped(content, start, sizes, name)


def read_npy(content: bytes, name: str) -> np.ndarray:
    """Array of an npy file (version 1) of unsigned bytes in C order; read-only.

    Raises:
      DataError: it is no such file, or sizes and length disagree.
    """
    found = _NPY.match(content)
    if found is None or len(found[0]) != 10 + int.from_bytes(found[1], "little"):
        raise DataError(f"{name}: not an npy file of uint8 in C order")
    sizes = [int(size) for size in found[2].split(b",") if size.strip()]
    return _shaped(content, found.end(), sizes, name)


def _shaped(content: bytes, start: int, sizes: Sequence[int], name: str) -> np.ndarray:
    found = len(content) - start
    if math.prod(sizes) != found:
        raise DataError(
            f"{name}: {found} bytes where its header announces "
            f"{' x '.join(map(str, sizes))}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)
