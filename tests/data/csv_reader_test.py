import numpy as np
import pytest

from fljax import memory
from fljax.data.csv_format import CsvFormat
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
        (b"a,\x1b[31mb\n1,2\n", r"column 2 has control characters .*x1b\[31mb"),
        (b"a,b,a\n1,2,3\n", "column 'a' appears more than once"),
        (b"a,b\n1,2\n1,2,3\n", "malformed CSV"),
        (b"a,b\n1,2,3\n4,5,6\n", "malformed CSV"),
        (b'a,b\n1,"2\n', "malformed CSV"),
        (b"a,b\r1,2\r3,4\r", "its lines end with CR, expected LF or CR and LF"),
        (b"a,b\n\xff\xfe,2\n", "not UTF-8"),
        (b"\xff\xfea,b\n1,2\n", "not UTF-8"),
        (b"PK\x03\x04\x14\x00\xff", "an Excel workbook or zip archive, save it as CSV"),
    ],
    ids=str,
)
def test_a_broken_file_is_one_clear_line(content, line):
    with pytest.raises(DataError, match=line) as error:
        read_csv(content, "f.csv")
    assert str(error.value).startswith("f.csv: ")
    assert "\n" not in str(error.value)


def test_a_file_that_would_fill_the_memory_is_refused(monkeypatch):
    content = b"a,b\n" + b"1,2\n" * 1000
    monkeypatch.setattr(memory, "available", lambda: 1e5)
    with pytest.raises(
        DataError, match="^f.csv: its 2002 cells need about .* GB are f"
    ):
        read_csv(content, "f.csv")
    assert len(read_csv(content, "f.csv", columns=("a",))) == 1000
    monkeypatch.setattr(memory, "available", lambda: 1e6)
    assert len(read_csv(content, "f.csv")) == 1000


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a;b\n1;2\n", "header 'a;b' is one column, try separator=';'$"),
        (b"a;b\n1,5;2\n;3\n", "one column, try separator=';' and decimal=','$"),
        (b"a,b;c\n1,5,7;2\n1;2\n", "malformed CSV .*, try separator=';'"),
        (b"a\tb\n1\t2\n", "try separator=tab"),
        (b"a,b\nS\xfcd,2\n", "byte 5\\), try encoding=latin-1, which reads 'S\xfcd'"),
        (b"a,b\n\x80,2\n", "try encoding=cp1252, which reads '\u20ac' there"),
        ("a,b\n1,2\n".encode("utf-16"), "try encoding=utf-16"),
    ],
    ids=str,
)
def test_an_error_names_the_option_that_helps(content, line):
    with pytest.raises(DataError, match=line):
        read_csv(content, "f.csv")


def test_a_file_of_another_office():
    form = CsvFormat(
        separator=";", decimal=",", encoding="latin-1", missing_codes=("?", "b=-1")
    )
    frame = read_csv(
        "a;b;ort\n1,5;-1;Süd\n?;2;?\n-1;3;x".encode("latin-1"), "f", form=form
    )
    assert frame["a"].tolist()[::2] == [1.5, -1]
    assert frame.isna().to_numpy().tolist() == [
        [False, True, False], [True, False, True], [False, False, False],
    ]  # fmt: skip
    assert frame["ort"][0] == "Süd"
    wide = "a\tb\n1\t2\n".encode("utf-16")
    form = CsvFormat(separator="tab", encoding="utf-16")
    assert read_csv(wide, "f.csv", form=form).to_numpy().tolist() == [[1, 2]]


def test_thousands_are_groups_of_three_digits():
    form = CsvFormat(thousands=",", missing_codes=("?",))
    content = b'a,b,c,d\n"1,234.5","1,2",x,7\n999,"2,3","y,z",8\n?,"3,4",x,9\n'
    frame = read_csv(content, "f.csv", form=form)
    assert frame["a"].tolist()[:2] == [1234.5, 999] and np.isnan(frame["a"][2])
    assert frame["b"].tolist() == ["1,2", "2,3", "3,4"]  # not 12
    assert frame["c"].tolist() == ["x", "y,z", "x"] and frame["d"].tolist() == [7, 8, 9]
    form = CsvFormat(thousands="space", separator=";", decimal=",")
    frame = read_csv(b"a\n-12 345,5\n1 000 000\n7\n", "f.csv", form=form)
    assert frame["a"].tolist() == [-12345.5, 1e6, 7]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"separator": ""}, "separator='': expected one character"),
        ({"separator": "§"}, "separator='§': expected one character of ASCII, or tab"),
        ({"decimal": "x"}, "decimal='x': expected a point or a comma"),
        ({"decimal": ","}, "separator=',' is also the decimal mark"),
        ({"thousands": "."}, "thousands='.': expected space or one of"),
        ({"thousands": "ab"}, "thousands='ab': expected space or one of"),
        ({"thousands": "1"}, "thousands='1': expected space or one of"),
        ({"thousands": "-"}, "thousands='-': expected space or one of"),
        ({"encoding": "latin-9000"}, "encoding='latin-9000': expected an encoding"),
        ({"encoding": "ascii"}, "not ascii text"),
    ],
    ids=str,
)
def test_options_of_the_wrong_kind_are_one_line(options, line):
    with pytest.raises(DataError, match=line):
        read_csv("a,b\n1,ü\n".encode(), "f.csv", form=CsvFormat(**options))


def test_spaces_behind_a_text_make_no_second_category():
    with pytest.warns(UserWarning, match="f.csv: spaces .* left out in b$"):
        frame = read_csv(b"a,b\n1,yes\n2,yes \n3,no\n4,\n", "f.csv")
    assert frame["b"].tolist()[:3] == ["yes", "yes", "no"] and frame["b"].isna()[3]


def test_none_is_a_word_and_null_is_no_value():
    frame = read_csv(b"a,b\nNone,1\nLight,null\n,3\n", "x.csv")
    assert frame.a.tolist()[:2] == ["None", "Light"]
    assert frame.isna().to_numpy().tolist() == [[0, 0], [0, 1], [1, 0]]


def test_a_nul_byte_is_named_with_its_line():
    with pytest.raises(
        DataError, match="mine.csv: a NUL byte in line 3, expected text"
    ):
        read_csv(b"age,pay\n1,2\n3,0\x00.5\n", "mine.csv")
