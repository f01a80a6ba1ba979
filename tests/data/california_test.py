import dataclasses
import io
import pathlib
import tarfile

import numpy as np
import pytest

from fljax import data
from fljax.data import california
from fljax.data.fetch import File
from fljax.data.table import FileRecord

_ROWS = """\
-122.23,37.88,41.0,880.0,129.0,322.0,126.0,8.3252,452600.0
-122.22,37.86,21.0,7099.0,1106.0,2401.0,1138.0,8.3014,358500.0
"""


def _archive(name: str) -> File:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(_ROWS)
        tar.addfile(entry, io.BytesIO(_ROWS.encode()))
    record = FileRecord(name="cal_housing.tgz", sha256="0" * 64, origin="local")
    return File(record, written.getvalue())


def test_sums_over_a_block_group_become_numbers_of_a_household():
    table = california.from_archive(_archive("CaliforniaHousing/cal_housing.data"))
    first = table.frame.iloc[0]
    assert list(table.kinds) == list(table.frame.columns[:-1])
    np.testing.assert_allclose(first["average_rooms"], 880 / 126)
    np.testing.assert_allclose(first["average_bedrooms"], 129 / 126)
    np.testing.assert_allclose(first["average_occupancy"], 322 / 126)
    np.testing.assert_allclose(first[["house_value", "population"]], [4.526, 322])
    assert table.sensitive is None


def test_an_archive_without_the_rows_is_refused():
    with pytest.raises(
        data.DataError, match="expected CaliforniaHousing/cal_housing.data in"
    ):
        california.from_archive(_archive("other.data"))


def test_the_file_has_its_known_rows(shared_data, monkeypatch):
    offline = dataclasses.replace(california.CALIFORNIA, download=False)
    monkeypatch.setattr(california, "CALIFORNIA", offline)
    if not (pathlib.Path(shared_data) / "california" / "cal_housing.tgz").exists():
        pytest.skip("needs cal_housing.tgz in ../shared/data/california")
    table = data.load("california", data_dir=shared_data)
    assert len(table.frame) == 20640
