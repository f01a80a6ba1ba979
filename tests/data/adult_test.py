import pytest

from fljax import data
from fljax.data.adult import parse
from fljax.data.fetch import File
from fljax.data.table import FileRecord

PERSON = "39, State-gov, 77516, {}, 13, Never-married, ?, Husband, White, Male, 0, 0, 40, ?, {}"


def file_of(*lines):
    record = FileRecord(name="adult.test", sha256="", origin="local")
    return File(record, "\n".join([*lines, ""]).encode())


def test_the_note_and_the_dots_of_the_test_file_are_understood():
    frame = parse(
        file_of(
            "|1x3 Cross validator",
            PERSON.format("Bachelors", ">50K."),
            PERSON.format("Masters", "<=50K."),
        )
    )
    assert frame["income"].tolist() == [1, 0]
    assert frame["education"].tolist() == ["Bachelors", "Masters"]
    assert frame["occupation"].tolist() == ["?", "?"]


def test_an_unknown_label_is_named():
    with pytest.raises(data.DataError, match="adult.test: unknown income '70K'"):
        parse(file_of(PERSON.format("Masters", "70K")))


@pytest.mark.parametrize(
    ("options", "name", "num_rows"),
    [
        ({}, "adult", 48842),
        ({"degree": "bachelors"}, "adult_bachelors", 12110),
        ({"degree": "bachelors", "missing": "drop"}, "adult_bachelors", 11748),
    ],
    ids=str,
)
def test_the_real_files_have_known_sizes(shared_data, options, name, num_rows):
    table = data.load("adult", data_dir=shared_data, **options)
    assert (table.name, len(table.frame)) == (name, num_rows)
    assert {"age", "education"} <= set(table.frame.columns)
    assert "education" not in table.kinds


@pytest.mark.parametrize(
    ("which", "numeric", "onehot"), [("fed_cdp", 6, 99), ("fed_cdp_dummies", 105, 0)]
)
def test_wei_et_als_inputs_and_split_come_out(shared_data, which, numeric, onehot):
    table = data.load("adult", data_dir=shared_data, features="all", sensitive=None)
    dataset = data.prepare(table, data.preset("adult", which), seed=0)
    assert (len(dataset.train.y), len(dataset.test.y)) == (36631, 12211)
    assert (dataset.num_numeric, dataset.num_onehot) == (numeric, onehot)
    assert not [name for name in dataset.numeric_names if "?" in name]


@pytest.mark.parametrize("option", ["degree", "missing", "features"])
def test_an_unknown_choice_is_one_line(option):
    with pytest.raises(data.DataError, match=f"{option}='x' is not one of"):
        data.load("adult", **{option: "x"})
