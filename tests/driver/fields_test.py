"""Flags that change something only beside others."""

import dataclasses
from typing import Literal

import pytest
from absl import flags

from fljax.driver import config
from fljax.driver.option import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dealt:
    kind: Literal["even", "shards", "chance"] = option("even", "how")
    shards: int = option(2, "of each client", of={"kind": ("shards", "chance")})
    rounds: int = option(0, "of a training")
    clients: int = option(6, "of a training", of={"rounds": ()})
    attacks: tuple[str, ...] = option(("a", "b"), "which")
    depth: float = option(0.5, "of b", of={"attacks": ("b",), "kind": ("even",)})
    columns: tuple[str, ...] | None = option(None, "some")
    width: int = option(1, "of a column", of={"columns": ("age",)})


def _read(*arguments):
    values = flags.FlagValues()
    config.define(Dealt, "dealt", flag_values=values)
    values(["program", *(f"--dealt_{each}" for each in arguments)])
    return config.read(Dealt, "dealt", flag_values=values)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shards=3"], "shards=3: is of --dealt_kind=shards or chance, got even"),
        (["clients=2"], "clients=2: is of --dealt_rounds, got 0"),
        (["depth=1", "attacks=a,c"], "depth=1.0: is of --dealt_attacks=b, got a,c"),
        (["depth=1", "kind=shards"], "depth=1.0: is of --dealt_kind=even, got shards"),
        (["width=2"], "width=2: is of --dealt_columns=age, got none"),
    ],
    ids=[
        "another value",
        "the default",
        "none of several",
        "the second of two",
        "none",
    ],
)
def test_what_would_change_nothing_is_refused(arguments, said):
    with pytest.raises(config.ConfigError, match=f"^--dealt_{said}$"):
        _read(*arguments)


def test_an_object_that_was_built_by_hand_is_held_against_it_too():
    with pytest.raises(config.ConfigError, match="^--shards=3: is of --kind=shards or"):
        config.check(Dealt(shards=3))
    config.check(Dealt(shards=3, kind="chance"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["shards=2", "clients=6"], Dealt()),  # as they are anyway
        (["shards=3", "kind=chance"], Dealt(shards=3, kind="chance")),
        (["clients=2", "rounds=1"], Dealt(clients=2, rounds=1)),
        (["depth=1", "attacks=b"], Dealt(depth=1.0, attacks=("b",))),
    ],
)
def test_what_changes_something_or_nothing_at_all_is_not(arguments, expected):
    assert _read(*arguments) == expected
