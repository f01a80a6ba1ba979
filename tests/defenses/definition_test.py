"""A defense of one's own that does not fit is named before anything is trained."""

import re
import sys
import types

import numpy as np
import pytest

from fljax.defenses import parts, specs
from fljax.defenses.definition import Definition, Number, Setting
from fljax.defenses.effects import Effects
from fljax.types import Defense

_BITS = Number("bits", "bits of each entry", min=1)


@pytest.mark.parametrize(
    "build, parameters, said",
    [
        (lambda setting, *, levels: None, (_BITS,), "called with setting, bits: "),
        (lambda setting: None, (_BITS,), "called with setting, bits: "),
        (lambda setting, *, bits: None, _BITS, "parameters: expected a tuple"),
        (lambda setting, *, bits: None, ("bits",), "parameters: expected a tuple"),
    ],
)
def test_parameters_are_those_of_build(build, parameters, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        Definition(build=build, parameters=parameters, acts="messages")


def test_effects_take_what_build_takes():
    with pytest.raises(TypeError, match="effects: expected to be called with bits: "):
        Definition(
            build=_nothing, parameters=(_BITS,), acts="messages",
            effects=lambda *, levels: Effects(),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("effects", "said"),
    [
        (lambda *, bits: {"clip": bits}, "TypeError: expected Effects, got dict"),
        (lambda *, bits: 1 / 0, "ZeroDivisionError: division by zero"),
        (
            lambda *, bits: Effects(messages="whole", clip=1.0),
            "messages: expected one of",
        ),
        (lambda *, bits: Effects(messages="total"), "clip: expected a number"),
        (
            lambda *, bits: Effects(noise="sums", deviation=-1.0),
            "deviation: expected 0",
        ),
        (lambda *, bits: Effects(deviation=1.0), "noise: expected what"),
        (lambda *, bits: Effects(share=0.0), "share: expected above 0, at most 1"),
    ],
    ids=[
        "a dict",
        "an error",
        "a word",
        "no clip",
        "a negative number",
        "noise of nothing",
        "nothing is sent",
    ],
)
def test_effects_that_nobody_can_simulate_are_named(effects, said, monkeypatch):
    mine = Definition(
        build=_nothing, parameters=(_BITS,), acts="messages", effects=effects
    )
    monkeypatch.setitem(sys.modules, "mine", types.SimpleNamespace(wrong=mine))
    parts.definition.cache_clear()
    with pytest.raises(specs.SpecError, match=f"^mine:wrong: effects: {said}"):
        specs.parse("mine:wrong(bits=2)")
    with pytest.raises(specs.SpecError, match=f"^mine:wrong: effects: {said}"):
        specs.parse("mine:wrong(bits=2|3)")
    parts.definition.cache_clear()


def test_an_error_of_ones_own_build_is_called_by_its_defense(monkeypatch):
    wrong = Definition(
        build=lambda setting, *, bits: bits / 0, parameters=(_BITS,), acts="messages"
    )
    monkeypatch.setitem(sys.modules, "mine", types.SimpleNamespace(broken=wrong))
    spec = specs.parse("mine:broken(bits=2)")
    with pytest.raises(specs.SpecError, match="^mine:broken: build: ZeroDivisionError"):
        specs.bind(spec, Setting(lambda *_: 0.0, 1))


def test_an_error_of_ones_own_build_is_one_line(monkeypatch):
    def build(setting, *, bits):
        raise ValueError("one\ntwo")

    mine = Definition(build=build, parameters=(_BITS,), acts="messages")
    monkeypatch.setitem(sys.modules, "mine", types.SimpleNamespace(told=mine))
    parts.definition.cache_clear()
    with pytest.raises(
        specs.SpecError, match="^mine:told: build: ValueError: one two$"
    ):
        specs.bind(specs.parse("mine:told(bits=2)"), Setting(lambda *_: 0.0, 1))
    parts.definition.cache_clear()


_DELTA = {"w": np.zeros((2, 3), np.float32)}


@pytest.mark.parametrize(
    ("acts", "said"),
    [
        ({"encode": lambda *_: np.zeros(3)}, r"encode: expected \['w'\] \[2, 3\], got"),
        (
            {"receive": lambda *_: _DELTA["w"] @ _DELTA["w"]},
            "receive: ValueError: matmul",
        ),
        ({"gradient": lambda *_: _DELTA}, "gradient: expected .gradient, mean loss."),
        ({"gradient": lambda *_: 1 / 0}, "gradient: ZeroDivisionError: division"),
        (
            {"gradient": lambda *_: (_DELTA, np.zeros(3))},
            r"gradient: expected a mean loss \[\] of a batch, got one array \[3\]",
        ),
    ],
)
def test_an_error_in_training_is_called_by_its_defense(acts, said, monkeypatch):
    mine = types.SimpleNamespace(own=_made(**acts))
    monkeypatch.setitem(sys.modules, "mine", mine)
    parts.definition.cache_clear()
    built = specs.bind(specs.parse("mine:own(bits=2)"), Setting(lambda *_: 0.0, 1))
    with pytest.raises(specs.SpecError, match=f"^mine:own: {said}") as raised:
        getattr(built, next(iter(acts)))(None, _DELTA, None)
    assert "\n" not in str(raised.value)
    parts.definition.cache_clear()


def _nothing(setting, *, bits):
    return Defense()


quiet = Definition(build=_nothing, parameters=(_BITS,), acts="messages", promise="none")
silent = Definition(build=_nothing, parameters=(_BITS,), acts="messages")
function = Definition(
    build=lambda setting, *, bits: _nothing, parameters=(_BITS,), acts="messages"
)


def _made(**acts):
    def build(setting, *, bits):
        return Defense(**acts)

    return Definition(build=build, parameters=(_BITS,), acts="steps", promise="none")


slope = _made(gradient=lambda params, batch: params)
sent = _made(encode=lambda key, delta: delta)
value = _made(receive=0.5)


@pytest.mark.parametrize(
    "name, said",
    [
        ("slope", "gradient: expected to be called with key, params, batch: too many"),
        ("sent", "encode: expected to be called with key, delta, sender: too many"),
        ("value", "receive: expected to be called with .* not a callable"),
        ("quiet", ""),
        ("silent", "a promise that says why"),
        ("function", "got function"),
    ],
)
def test_a_defense_says_what_it_promises(name, said, monkeypatch):
    mine = types.SimpleNamespace(**{name: globals()[name]})
    monkeypatch.setitem(sys.modules, "mine", mine)
    spec = specs.parse(f"mine:{name}(bits=2)")
    setting = Setting(lambda *_: 0.0, 1, num_rounds=1)
    if not said:
        assert specs.bind(spec, setting, specs.numbers(spec)).encode is None
        return
    with pytest.raises(specs.SpecError, match=f"^mine:{name}: .*{said}"):
        specs.bind(spec, setting, specs.numbers(spec))


@pytest.mark.parametrize("text", ["0", "1e-300", "1e300", "inf", "nan", "much"])
def test_a_number_is_one_that_is_computed_with(text):
    clip = Number("clip", "norm", above=0)
    with pytest.raises(ValueError):
        clip.read(text)
    assert clip.read("1e-30") == 1e-30


def test_a_setting_has_the_batches_of_its_clients():
    sizes = np.array([10, 3])
    fixed = Setting.of_clients(lambda *_: 0.0, 1, sizes, 4, poisson=False)
    np.testing.assert_array_equal(fixed.batch_size, [4, 3])  # whole ones
    np.testing.assert_allclose(fixed.sampling_rate, [1 / 3, 1])
    assert fixed.batches == "fixed" and fixed.drawn == "all"
    drawn = Setting.of_clients(lambda *_: 0.0, 1, sizes, 4, poisson=True, num_rounds=2)
    np.testing.assert_allclose(drawn.batch_size, [10 / 3, 3])  # what is expected
    assert drawn.batches == "poisson" and drawn.num_rounds == 2
    whole = Setting.of_clients(lambda *_: 0.0, 1, 10, None, poisson=False)
    assert whole.batch_size == 10 and whole.sampling_rate == 1
