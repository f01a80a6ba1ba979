"""What a data frame says of its columns and the file that it makes does not."""

import pandas as pd
import pytest

import fljax
from fljax.auditing import frames
from fljax.auditing.settings import FilesConfig, RowsConfig
from fljax.driver.config import ConfigError

_FILES = FilesConfig(
    transcript="seen", known="rows", target="y", sensitive="s", client_column="client"
)


def _columns(frame: dict, **told) -> tuple[str, ...]:
    return frames.columns(pd.DataFrame(frame), _FILES, RowsConfig(**told)).categorical


def test_numbers_as_categories_are_categories():
    grade = pd.Categorical([1, 2, 3])
    assert _columns({"grade": grade, "age": [3, 4, 5]}) == ("grade",)
    assert _columns({"grade": grade}, categorical=("sex",)) == ("sex", "grade")
    assert _columns({"grade": grade}, numeric=("grade",)) == ()
    assert _columns({"grade": grade}, drop=("grade",)) == ()
    assert frames.columns("rows.csv", _FILES, RowsConfig()) == RowsConfig()


@pytest.mark.parametrize(
    "cells",
    [
        [1.5, None, 3.0],
        pd.array([1, None, 3], dtype="Int64"),
        pd.array([1, None, 3], dtype=object),
        pd.array([True, None, False], dtype="boolean"),
        [None, None, None],
        ["0", "1", None],
        ["1", "2", "many"],
        pd.Categorical(["a", "b", None]),
        pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]),
        pd.to_timedelta([1, 2, 3], unit="s"),
    ],
)
def test_other_columns_are_read_as_the_file_has_them(cells):
    assert _columns({"a": cells}) == ()


@pytest.mark.parametrize(
    "cells, text",
    [
        (["01", "02", "03"], "01"),
        ([1, "2", None, 3], "2"),
        (pd.Categorical(["10", "2", "1"]), "10"),
    ],
)
def test_texts_that_are_numbers_are_asked_about(cells, text):
    said = (
        f"^rows: column 'zip' has texts that are numbers, such as '{text}'; make them"
    )
    with pytest.raises(ConfigError, match=said):
        _columns({"zip": cells})
    assert _columns({"zip": cells}, categorical=("zip",)) == ("zip",)
    assert _columns({"zip": cells}, numeric=("zip",)) == ()
    assert _columns({"client": cells}) == ()
    with pytest.raises(ConfigError, match="numbers, or list it in numeric=$"):
        _columns({"y": cells})  # the target, which is a number or has a task


@pytest.mark.parametrize("cells", [["4", "7"], pd.Categorical([1, 2])])
def test_two_numbers_are_no_categories_but_0_and_1(cells):
    said = "^rows: column 'ward' has two categories that are numbers, such as '?[41]"
    with pytest.raises(ConfigError, match=said):
        _columns({"ward": cells})
    assert _columns({"ward": pd.Categorical([1, 0])}) == ()
    assert _columns({"ward": cells}, numeric=("ward",)) == ()


@pytest.mark.parametrize(
    "declared", [["low", "mid", "high"], ["high", "low", "mid", "none"]]
)
def test_an_order_that_is_not_kept_is_warned_of(declared):
    grades = pd.Categorical(["low", "mid", "high"], categories=declared)
    with pytest.warns(
        UserWarning, match=f"get_dummies of it .* order {', '.join(declared)}$"
    ):
        assert _columns({"grade": grades}) == ()


def test_of_a_target_the_order_is_that_of_its_codes():
    grades = pd.Categorical(["no", "yes"], categories=["yes", "no"])
    with pytest.warns(UserWarning, match="where codes of it are in the order yes, no$"):
        _columns({"y": grades}, task="binary")


def test_texts_that_a_file_has_for_missing_values_are_warned_of():
    with pytest.warns(UserWarning, match="rows: column 'land': 'NA' is taken for a"):
        assert _columns({"land": ["NA", "EU", None]}) == ()
    assert _columns({"land": ["NA", "EU", None]}, drop=("land",)) == ()  # no warning


def test_cells_are_numbers_or_texts():
    with pytest.raises(ConfigError, match="^rows: column 'a': expected .*, got list$"):
        _columns({"a": [[1], [2, 3], None]})
    assert _columns({"a": [[1], [2, 3], None]}, drop=("a",)) == ()


def test_a_target_of_categories_needs_a_task():
    target = {"y": pd.Categorical([0, 1, 2])}
    said = "^--task: target 'y' has categories; expected multiclass or regression"
    with pytest.raises(ConfigError, match=said):
        _columns(target)
    assert _columns(target, task="multiclass") == ()
    assert _columns({"y": pd.Categorical([0, 1, 0])}) == ()


def test_an_audit_takes_them_as_the_frame_has_them(linear):
    rows = pd.read_csv(linear / "rows.csv")
    rows = rows.assign(age=pd.cut(rows.age, 3, labels=[1, 2, 3]))
    told = {"target": "y", "sensitive": "age", "client_column": "client"}
    with pytest.raises(ValueError, match="^rows: column 'age' has texts that are"):
        fljax.audit(linear / "seen", rows.astype({"age": str}), **told)
    # Inputs that training did not have: three of age in place of one.
    with pytest.raises(ValueError, match="rows make 5: age_1, age_2, age_3"):
        fljax.audit(linear / "seen", rows, attacks=("model",), **told)
