import io
import struct

import numpy as np
import pytest

from fljax.data.idx import read_idx, read_npy
from fljax.data.table import DataError

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def idx_of(array):
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def npy_of(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_idx_and_npy_give_the_array_back():
    found = read_idx(idx_of(PIXELS), "f", num_dims=3)
    np.testing.assert_array_equal(found, PIXELS)
    for array in (PIXELS, PIXELS[0, 0]):
        np.testing.assert_array_equal(read_npy(npy_of(array), "f"), array)
    assert found.dtype == np.uint8


IDX = idx_of(PIXELS)
BAD_IDX = {
    "empty": (b"", "it starts with nothing instead of 00000803"),
    "labels": (idx_of(PIXELS[0, 0]), "it starts with 00000801 instead of 00000803"),
    "floats": (b"\0\0\x0d\3" + IDX[4:], "it starts with 00000d03"),
    "a page": (b"<html></html>", "it starts with 3c68746d"),
    "cut header": (IDX[:9], "truncated inside its header"),
    "cut": (IDX[:-1], "23 bytes where its header announces 2 x 3 x 4"),
    "too long": (IDX + b"\0", "25 bytes where its header announces 2 x 3 x 4"),
    "huge": (IDX[:4] + b"\xff" * 12 + IDX[16:], "24 bytes where its header announces"),
}


@pytest.mark.parametrize("content, message", BAD_IDX.values(), ids=BAD_IDX)
def test_what_is_no_idx_file_is_one_line(content, message):
    with pytest.raises(DataError, match=f"digits.idx: .*{message}") as error:
        read_idx(content, "digits.idx", num_dims=3)
    assert "\n" not in str(error.value)


NPY = npy_of(PIXELS)
BAD_NPY = {
    "empty": (b"", "not an npy file"),
    "a page": (b"<html></html>", "not an npy file"),
    "cut header": (NPY[:40], "not an npy file"),
    "cut": (NPY[:-1], "23 bytes where its header announces 2 x 3 x 4"),
    "floats": (npy_of(np.zeros(3)), "not an npy file of uint8 in C order"),
    "columns": (npy_of(np.asfortranarray(PIXELS)), "not an npy file of uint8 in C"),
    "objects": (npy_of(np.array([{}])), "not an npy file of uint8 in C order"),
    "broken": (NPY.replace(b"(2, 3, 4)", b"(2, 3,((("), "not an npy file"),
    "huge": (NPY.replace(b"(2, 3, 4)", b"(2,99999)"), "24 bytes where its header anno"),
    "another length": (NPY[:8] + b"\xff" + NPY[9:], "not an npy file"),
}


@pytest.mark.parametrize("content, message", BAD_NPY.values(), ids=BAD_NPY)
def test_what_is_no_npy_file_of_bytes_is_one_line(content, message):
    with pytest.raises(DataError, match=f"x.npy: {message}") as error:
        read_npy(content, "x.npy")
    assert "\n" not in str(error.value)
