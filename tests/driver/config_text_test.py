"""Values as they are typed behind their flags, and read again."""

import dataclasses

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
