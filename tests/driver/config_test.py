"""Flags from dataclasses: types, defaults, bounds, one-line errors."""

import dataclasses
import json
from typing import Literal

import hypothesis
import hypothesis.strategies as st
import pytest
from absl import flags

from fljax.driver import config


def _field(default=dataclasses.MISSING, **metadata):
    return dataclasses.field(default=default, metadata={"help": "a word", **metadata})


def _made(hint, field, *, frozen=True, kw_only=True):
    return dataclasses.make_dataclass(
        "Made", [("rounds", hint, field)], frozen=frozen, kw_only=kw_only
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Federation:
    batch_size: int = _field(32, min=1)
    learning_rate: float = _field(1, above=0)
    share: float = _field(0.5, min=0, below=1)
    smoke: bool = _field(False)
    name: str = _field("medical")
    algorithm: Literal["avg", "prox"] = _field("avg")
    level: Literal[1, 2] = _field(1)
    widths: tuple[int, ...] = _field((128,), min=1)
    rates: tuple[float, ...] = _field((0.1, 1), above=0)
    tags: tuple[str, ...] = _field(())
    clip: float | None = _field(None, above=0)


def _parsed(cls, *arguments, prefix=""):
    values = flags.FlagValues()
    config.define(cls, prefix, flag_values=values)
    values(["program", *arguments])
    return config.read(cls, prefix, flag_values=values)


def test_without_arguments_the_defaults_come_back_with_their_annotated_types():
    got = _parsed(Federation)
    assert got == Federation()
    assert {type(rate) for rate in (got.learning_rate, *got.rates)} == {float}


@pytest.mark.parametrize(
    "argument, name, value",
    [
        ("--batch_size=64", "batch_size", 64),
        ("--learning_rate=2e-6", "learning_rate", 2e-6),
        ("--clip=1e30", "clip", 1e30),
        ("--clip=none", "clip", None),
        ("--smoke", "smoke", True),
        ("--nosmoke", "smoke", False),
        ("--name=none", "name", "none"),
        ("--algorithm=prox", "algorithm", "prox"),
        ("--level=2", "level", 2),
        ("--widths=64,32", "widths", (64, 32)),
        ("--widths=", "widths", ()),
        ("--rates=1, 0.5", "rates", (1.0, 0.5)),
        ("--tags=a,b", "tags", ("a", "b")),
    ],
)
def test_a_flag_sets_its_field(argument, name, value):
    assert _parsed(Federation, argument) == dataclasses.replace(
        Federation(), **{name: value}
    )


def test_the_prefix_names_the_flags_and_lets_two_configs_share_field_names():
    values = flags.FlagValues()
    config.define(Federation, "one", flag_values=values)
    config.define(Federation, "two", flag_values=values)
    values(["program", "--one_batch_size=8", "--two_batch_size=9"])
    assert config.read(Federation, "one", flag_values=values).batch_size == 8
    assert config.read(Federation, "two", flag_values=values).batch_size == 9


_TINY = "expected a number of size 1e-37 to 1e+38, which float32 holds, got 1e-320"
BAD_VALUES = {
    "--f_batch_size=0": "--f_batch_size: expected an integer >= 1, got 0",
    "--f_learning_rate=0": "--f_learning_rate: expected a number > 0, got 0.0",
    "--f_learning_rate=inf": "--f_learning_rate: expected a number > 0, got inf",
    "--f_rates=1,1e-320": f"--f_rates: {_TINY}",
    "--f_widths=8,2147483648": "--f_widths: expected an integer of a size below 2^31, got 2147483648",
    "--f_share=1": "--f_share: expected a number >= 0 and < 1, got 1.0",
    "--f_widths=8,0": "--f_widths: expected integers >= 1 separated by commas, got 0",
    "--f_clip=-1": "--f_clip: expected a number > 0 or none, got -1.0",
}
BAD_SYNTAX = {
    "--f_batch_size=x": "--f_batch_size: expected an integer >= 1, got 'x'",
    "--f_batch_size=1.5": "--f_batch_size: expected an integer >= 1, got '1.5'",
    "--f_smoke=maybe": "--f_smoke: expected true or false, got 'maybe'",
    "--f_level=3": "--f_level: expected one of 1, 2, got '3'",
    "--f_algorithm=adam": "--f_algorithm: expected one of avg, prox, got 'adam'",
    "--f_widths=x": "--f_widths: expected integers >= 1 separated by commas, got 'x'",
    '--f_widths="1': "--f_widths: expected integers >= 1 separated by commas, got '\"1'",
}


@pytest.mark.parametrize("argument", BAD_VALUES)
def test_a_value_outside_its_bounds_is_refused_when_it_is_read(argument):
    with pytest.raises(config.ConfigError) as error:
        _parsed(Federation, argument, prefix="f")
    assert str(error.value) == BAD_VALUES[argument]


@pytest.mark.parametrize("argument", BAD_SYNTAX)
def test_a_value_of_another_type_is_refused_when_it_is_parsed(argument):
    with pytest.raises(flags.IllegalFlagValueError) as error:
        _parsed(Federation, argument, prefix="f")
    assert BAD_SYNTAX[argument] in str(error.value)


def test_one_value_is_parsed_from_text_as_its_flag_would_be():
    got = config.parse(Federation, "f", "rates", "1, 0.5")
    assert [(rate, type(rate)) for rate in got] == [(1.0, float), (0.5, float)]
    assert config.parse(Federation, "f", "clip", "none") is None


def test_the_help_of_integers_says_how_many_are_typed_at_once():
    values = flags.FlagValues()
    config.define(Federation, "f", flag_values=values)
    helped = {name: values[name].help for name in ("f_widths", "f_rates", "f_level")}
    assert [name for name in helped if "0..9: all from 0 to 9" in helped[name]] == [
        "f_widths"
    ]


@pytest.mark.parametrize("argument", BAD_VALUES | BAD_SYNTAX)
def test_one_value_is_refused_in_the_words_of_its_flag(argument):
    flag, text = argument.split("=")
    with pytest.raises(config.ConfigError) as error:
        config.parse(Federation, "f", flag.removeprefix("--f_"), text)
    assert str(error.value) == (BAD_VALUES | BAD_SYNTAX)[argument]


def test_a_flag_without_default_is_required():
    cls = _made(int, _field(min=1))
    assert _parsed(cls, "--rounds=3").rounds == 3
    with pytest.raises(config.ConfigError, match="an integer >= 1, got nothing"):
        _parsed(cls)


def test_what_the_class_itself_refuses_is_a_config_error():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Range:
        low: int = _field(0)
        high: int = _field(1)

        def __post_init__(self):
            if self.low > self.high:
                raise ValueError(f"low must be <= high, got {self.low}, {self.high}")

    with pytest.raises(config.ConfigError, match="^--range: low must be <= high"):
        _parsed(Range, "--range_low=2", prefix="range")


BAD_CLASSES = {
    "not frozen": _made(int, _field(1), frozen=False),
    "positional": _made(int, _field(1), kw_only=False),
    "no help": _made(int, dataclasses.field(default=1)),
    "unknown metadata": _made(int, _field(1, minimum=1)),
    "a list": _made(list[int], _field(None)),
    "a pair": _made(tuple[int, int], _field((1, 2))),
    "a union": _made(int | str, _field(1)),
    "mixed choices": _made(Literal[1, "a"], _field(1)),
    "of nothing": _made(int, _field(1, of={"clients": (1,)})),
    "of no choice": _made(Literal["a", "b"], _field("a", of={"rounds": ("c",)})),
}


@pytest.mark.parametrize("cls", BAD_CLASSES.values(), ids=BAD_CLASSES)
def test_a_class_that_flags_cannot_express_is_refused_at_definition(cls):
    with pytest.raises(TypeError):
        config.define(cls, flag_values=flags.FlagValues())


@pytest.mark.parametrize("default", [0, 1.5, "1", True], ids=repr)
def test_a_default_that_its_own_flag_would_refuse_is_refused_at_definition(default):
    cls = _made(int, _field(default, min=1))
    with pytest.raises(config.ConfigError, match="^--rounds: expected an integer >= 1"):
        config.define(cls, flag_values=flags.FlagValues())


def test_to_flags_is_flat_and_strict_json():
    values = config.to_flags(Federation(clip=float("inf"), learning_rate=2), "f")
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["f_widths"] == [128]
    assert values["f_clip"] == "inf"
    assert json.dumps(values["f_learning_rate"]) == "2.0"
    assert set(values) == {f"f_{f.name}" for f in dataclasses.fields(Federation)}


@hypothesis.given(
    st.builds(
        Federation,
        batch_size=st.integers(1, 2**31 - 1),
        learning_rate=st.floats(1e-37, 1e38),
        smoke=st.booleans(),
        widths=st.lists(st.integers(1, 2**31 - 1), max_size=3).map(tuple),
        clip=st.none() | st.floats(1e-37, 1e38),
    )
)
def test_the_manifest_written_as_flags_reads_back_as_the_same_config(made):
    def text(value):
        return ",".join(map(str, value)) if isinstance(value, list) else str(value)

    values = config.to_flags(made, "f")
    arguments = [f"--{name}={text(value)}" for name, value in values.items()]
    assert _parsed(Federation, *arguments, prefix="f") == made
