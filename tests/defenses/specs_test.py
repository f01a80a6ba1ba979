"""Defenses as text: what is said, printed, refused and built."""

import inspect

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fljax.defenses import parts, specs, table
from fljax.defenses.definition import BUDGET, Choice, Definition, Number, Setting
from fljax.defenses.registry import DEFENSES

SETTING = Setting(lambda params, x, y: 0.0, 4, num_rounds=3, batches="poisson")


def _values(parameter):
    if isinstance(parameter, Choice):
        return st.sampled_from(parameter.choices)
    low, high = max(parameter.min, parameter.above), min(parameter.max, parameter.below)
    numbers = st.floats(
        max(low, -1e30),
        min(high, 1e30),
        exclude_min=parameter.above > -np.inf,
        exclude_max=parameter.below < np.inf,
    ).filter(
        lambda number: number == 0 or abs(number) >= 1e-37
    )  # smaller is no float32
    return st.one_of(
        numbers, st.lists(numbers, min_size=2, max_size=3, unique=True).map(tuple)
    )


@st.composite
def _parts(draw):
    name = draw(st.sampled_from(sorted(DEFENSES)))
    told = {}
    for each in DEFENSES[name].parameters:
        needed = each.required or each.name == "sigma"
        if each.name not in BUDGET and (needed or draw(st.booleans())):
            told[each.name] = draw(_values(each))
    if "sigma" in told and draw(st.booleans()):
        epsilon = DEFENSES[name].parameter("epsilon")
        del told["sigma"]
        told["epsilon"] = draw(_values(epsilon))
        told["accountant"] = draw(st.sampled_from(["rdp", "pld"]))
    return parts.trimmed(name, told)


@settings(deadline=None)
@given(st.lists(_parts(), max_size=3))
def test_what_is_printed_is_read_back(made):
    spec = specs.Spec(tuple(made))
    assert specs.parse(str(spec)) == spec
    assert hash(specs.parse(str(spec))) == hash(spec)
    each = specs.alternatives(spec)
    assert len(each) == np.prod(
        [len(v) for p in made for _, v in p.given if isinstance(v, tuple)], initial=1
    )
    words = [specs.structure(one) for one in each]
    numbered = all(
        not isinstance(v, tuple) or isinstance(v[0], float)
        for p in made
        for _, v in p.given
    )
    assert len(set(words)) == 1 or not numbered


def test_canonical_text_has_the_order_of_the_table_and_no_defaults():
    text = "fed_cdp( mode=per_example,sigma=6.0 , clip=4e0)+pruning(ratio=.3)"
    said = "fed_cdp(clip=4, sigma=6) + pruning(ratio=0.3)"
    assert str(specs.parse(text)) == said
    assert str(specs.parse("none")) == "none" and not specs.parse("none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp", "dp: expected none, module:attribute, or one of dp_sgd, "),
        ("", "an empty text: expected NAME or NAME(number=value, ...)"),
        ("pruning(ratio=0.5", "pruning(ratio=0.5: expected NAME or NAME("),
        ("median + none", "none: expected none, module:attribute"),
        ("pruning", "pruning: ratio: expected a number >= 0 and < 1, got nothing"),
        ("pruning(ratio=1)", "pruning: ratio: expected a number >= 0 and < 1, got '1'"),
        ("pruning(share=1)", "pruning: expected some of ratio, got 'share=1'"),
        ("pruning(ratio=0, ratio=0)", "pruning: ratio: expected once, got twice"),
        ("pruning(ratio=0|0)", "pruning: ratio: expected distinct alternatives"),
        ("dp_sgd(clip=1)", "dp_sgd: expected one of sigma and epsilon, got neither"),
        ("dp_sgd(clip=1, sigma=1, epsilon=1)", "dp_sgd: expected one of sigma and eps"),
        ("dp_sgd(clip=1, sigma=1, accountant=pld)", "dp_sgd: accountant: expected bes"),
        (
            "dp_sgd(clip=inf, sigma=1)",
            "dp_sgd: clip: expected a number >= 1e-12, got 'inf'",
        ),
        (
            "dp_sgd(clip=1, sigma=nan)",
            "dp_sgd: sigma: expected a number >= 0, got 'nan'",
        ),
        ("fed_sdp(clip=1, sigma=1, where=x)", "fed_sdp: where: expected one of client"),
        ("nowhere.to_be:found", "nowhere.to_be:found: cannot be imported"),
        ("math:tau", "math:tau: expected a fljax.defenses.definition.Definition"),
    ],
)
def test_what_is_no_defense_is_one_line(text, message):
    with pytest.raises(specs.SpecError) as refused:
        specs.parse(text)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_several_are_separated_and_none_is_there_twice():
    found = specs.parse_all("none; fed_cdp(clip=1|2, sigma=6|8); median")
    assert [str(spec) for spec in found] == [
        "none",
        "fed_cdp(clip=1, sigma=6)",
        "fed_cdp(clip=1, sigma=8)",
        "fed_cdp(clip=2, sigma=6)",
        "fed_cdp(clip=2, sigma=8)",
        "median",
    ]
    with pytest.raises(specs.SpecError, match="once, got it twice"):
        specs.parse_all("pruning(ratio=0.1|0.2); pruning(ratio=0.2)")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("fed_cdp(clip=1, sigma=2)", "fed_cdp(clip=3, sigma=0)", True),
        ("fed_cdp(clip=1, sigma=2)", "fed_cdp(clip=1, epsilon=2)", True),
        ("fed_cdp(clip=1, sigma=2)", "fed_cdp(clip=1, sigma=2, mode=per_batch)", False),
        ("fed_cdp(clip=1, sigma=2)", "fed_cdp(clip=1, decay_to=1, sigma=2)", False),
        ("pruning(ratio=0.1)", "dssgd(fraction=0.1)", False),
    ],
)
def test_specs_of_one_structure_differ_in_numbers_only(one, other, same):
    found = specs.structure(specs.parse(one)), specs.structure(specs.parse(other))
    assert (found[0] == found[1]) == same


def test_a_budget_is_resolved_before_a_defense_is_built():
    spec = specs.parse("fed_sdp(clip=1, epsilon=2)")
    with pytest.raises(ValueError, match="sigma is left to a budget"):
        specs.bind(spec, SETTING)
    built = specs.bind(spec, SETTING, ({"clip": 1.0, "sigma": 4.0},))
    assert built.noise[0].noise_multiplier == pytest.approx(4 / 4**0.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dp_sgd(clip=1, sigma=1)", True),
        ("fed_cdp(clip=1, sigma=1, mode=recommended) + pruning(ratio=0.1)", True),
        ("fed_cdp(clip=1, sigma=1)", False),
        ("fed_sdp(clip=1, sigma=1)", False),
    ],
)
def test_batches_must_be_poisson_samples_where_the_guarantee_rests_on_them(
    text, expected
):
    spec = specs.parse(text)
    assert specs.needs_poisson(spec) == expected
    if expected:
        with pytest.raises(ValueError, match="expected batches that are Poisson"):
            specs.bind(spec, SETTING._replace(batches="fixed"))


@pytest.mark.parametrize(
    ("text", "seams"),
    [
        ("none", set()),
        ("dp_sgd(clip=1, epsilon=1)", {"gradient"}),
        ("gaussian(deviation=1)", {"encode"}),
        ("laplace(scale=1, on=steps)", {"gradient"}),
        ("median + fed_sdp(clip=1, sigma=1, where=server)", {"gradient", "receive"}),
    ],
)
def test_a_spec_knows_where_it_acts(text, seams):
    assert specs.acts_on(specs.parse(text)) == seams


def test_numbers_may_be_traced():
    spec = specs.parse("fed_cdp(clip=1, decay_to=0.5, sigma=1)")

    @jax.jit
    def noise(numbers):
        return specs.bind(spec, SETTING, numbers).noise[0].sensitivity

    told = ({"clip": 3.0, "decay_to": 1.0, "sigma": 2.0},)
    assert noise(told) == pytest.approx(3 * 2)


@pytest.mark.parametrize("name", DEFENSES)
def test_a_definition_is_whole(name):
    known: Definition = DEFENSES[name]
    taken = inspect.signature(known.build).parameters
    assert set(taken) == {"setting"} | {
        each.name for each in known.parameters if each.name not in BUDGET
    }
    for each in known.parameters:
        assert each.meaning
        if isinstance(each, Number) and each.default is not None:
            assert each.read(str(each.default)) == each.default
    assert name in table.help_text()


def test_alternatives_are_no_defense():
    spec = specs.parse("dp_sgd(clip=1|2, sigma=1)")
    with pytest.raises(
        ValueError, match=r"clip=1\|2, sigma=1\): expected one value of each"
    ):
        specs.bind(spec, Setting(lambda *_: 0.0, 1))
