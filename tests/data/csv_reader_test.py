import pytest

from fljax.data.csv_reader import read_csv
from fljax.data.table import DataError


def test_a_file_is_read_with_its_own_names():
    frame = read_csv(b"\xef\xbb\xbfa, b\r\n1, x\r\n2,y\r\n", "f.csv")
    assert list(frame.columns) == ["a", "b"]
    assert frame["b"].tolist() == ["x", "y"]


def test_only_the_wanted_columns_that_are_there_are_read():
    frame = read_csv(b"a,b,c\n1,2,3\n", "f.csv", columns=("c", "a", "z"))
    assert list(frame.columns) == ["a", "c"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "empty"),
        (b"\n1,2\n", "names no columns"),
        (b"a,b\n", "no rows"),
        (b"a,b,a\n1,2,3\n", "column 'a' appears more than once"),
        (b"a,b\n1,2\n1,2,3\n", "malformed CSV"),
        (b"a,b\n1,2,3\n4,5,6\n", "malformed CSV"),
        (b'a,b\n1,"2\n', "malformed CSV"),
        (b"a,b\n\xff\xfe,2\n", "not UTF-8"),
        (b"\xff\xfea,b\n1,2\n", "not UTF-8"),
    ],
    ids=str,
)
def test_a_broken_file_is_one_clear_line(content, line):
    with pytest.raises(DataError, match=line) as error:
        read_csv(content, "f.csv")
    assert str(error.value).startswith("f.csv: ")
    assert "\n" not in str(error.value)
