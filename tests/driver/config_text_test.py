"""Values as they are typed behind their flags, and read again."""

import dataclasses

import pytest
from absl import flags

from fljax.driver import config


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    drop: tuple[str, ...] = dataclasses.field(
        default=(), metadata={"help": "columns left out"}
    )


def _read(argument: str) -> tuple[str, ...]:
    values = flags.FlagValues()
    config.define(Table, "data", flag_values=values)
    values(["program", argument])
    return config.read(Table, "data", flag_values=values).drop


def test_a_value_is_typed_as_its_flag_takes_it():
    values = [True, None, 1e-5, "a; b", [0.1, 2], []]
    typed = ["true", "none", "1e-05", "a; b", "0.1,2", ""]
    assert [config.to_text(value) for value in values] == typed


def test_commas_inside_a_value_are_quoted_and_read_again():
    names = ("age, in years", 'a "b"', "c")
    text = config.to_text(names)
    assert text == '"age, in years","a ""b""",c'
    assert _read(f"--data_drop={text}") == names
    assert _read('--data_drop=a , "b, c"') == ("a", "b, c")


def test_several_values_are_serialised_as_they_are_read():
    values = flags.FlagValues()
    config.define(Table, "data", flag_values=values)
    values(["program", '--data_drop="a, b",c'])
    assert values["data_drop"].serialize() == '--data_drop="a, b",c'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Numbers:
    seeds: tuple[int, ...] = dataclasses.field(
        default=(0,), metadata={"help": "seeds", "min": -9, "distinct": True}
    )


def _seeds(text: str) -> tuple[int, ...]:
    return config.parse(Numbers, "", "seeds", text)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("0..9", range(10)),
        ("7, 0..5, -9..-3", [7, *range(6), *range(-9, -2)]),
        ("4..4", [4]),
        ("0,1,2,3,4", range(5)),
    ],
)
def test_a_run_of_integers_is_typed_by_its_ends(typed, meant):
    assert _seeds(typed) == (*meant,)
    assert _seeds(config.to_text([*meant])) == (*meant,)


def test_many_integers_in_a_row_are_typed_so_and_texts_never():
    assert config.to_text([*range(20), 30, *range(40, 45)]) == "0..19,30,40,41,42,43,44"
    assert config.to_text([3, 2, 1, 0, -1, -2, -3]) == "3,2,1,0,-1,-2,-3"
    assert config.to_text([*map(str, range(7))]) == "0,1,2,3,4,5,6"
    assert config.to_text([*map(float, range(3))]) == "0.0,1.0,2.0"


@pytest.mark.parametrize(
    "text", ["9..0", "0..", "..9", "0...9", "0..1e9", "0..99999999", "-99..0"]
)
def test_what_is_no_run_of_integers_is_refused(text):
    with pytest.raises(config.ConfigError, match="^--seeds: expected integers"):
        _seeds(text)
