"""Leakage of each defense against what it costs in loss."""

from experiments.report import figures
from fljax import verdicts


def _promised(row, epsilon, metric="epsilon_pld", **fields):
    about = {"attack": "none", "setting": "defense", "metric": metric}
    return [row._replace(value=epsilon, **fields | about)]


def _shown(axes):
    """Number -> where it stands, and its colour."""
    colours = [bar.lines[0].get_color() for bar in axes.containers]
    numbers = [text for text in axes.texts if text.get_text().isdecimal()]
    places = [tuple(map(float, text.xy)) for text in numbers]
    return dict(zip((t.get_text() for t in numbers), zip(places, colours, strict=True)))


def test_leakage_is_drawn_against_relative_loss_and_coloured_by_epsilon(make, row):
    fields = {"defense": "dp_sgd", "point": "delta=1"}
    rows = make.defended("defense=pruning", 3.0, "pruning")
    rows += _promised(row, float("inf"), defense="pruning", point="defense=pruning")
    rows += make.defended("delta=1", 4.0) + _promised(row, 0.9, **fields)
    rows += _promised(row, 1.1, "epsilon_rdp", **fields)
    rows += _promised(row, 95.0, verdicts.CEILING, **fields)
    rows += make.defended("defense=fed_sdp", 2.0, "fed_sdp")
    rows += _promised(
        row, 9.0, "client_epsilon_pld", defense="fed_sdp", point="defense=fed_sdp"
    )
    rows += make.defended("", 2.0, "none")
    model, grad = figures.leakage_by_utility(rows).axes[:2]
    assert (model.get_title(), grad.get_title()) == ("model", "grad")
    found = _shown(model)
    assert {n: place for n, (place, _) in found.items()} == {
        "1": (1, 30), "2": (1.5, 30), "3": (2, 30), "4": (1, 30)
    }  # fmt: skip
    assert [y for (_, y), _ in _shown(grad).values()] == [20] * 4
    bars = [
        line.get_xydata().tolist() for line in model.lines if line.get_marker() == "_"
    ]
    assert bars == [[[2.0, 34.5]]]  # the majority is at 60.5
    assert found["1"][1] == found["2"][1] == "grey"
    assert found["3"][1] != found["4"][1]
    (names,) = [t.get_text() for t in grad.texts if "\n" in t.get_text()]
    assert names.splitlines() == [
        "1  none",
        "2  pruning",
        "3  dp_sgd delta=1: $\\varepsilon$ = 0.9",
        "4  fed_sdp: $\\varepsilon$ = 9 of a client",
        "",
        "bar: no adversary can be above",
    ]


def test_leakage_needs_a_defense_a_second_variant_and_a_majority(make):
    bare = make.defended("", 1.0, "none")
    assert figures.leakage_by_utility(bare) is None
    assert figures.leakage_by_utility(make.defended("", 1.0)) is None
    both = bare + make.defended("", 2.0)
    assert figures.leakage_by_utility(both) is not None
    without = [row for row in both if row.attack != "majority"]
    assert figures.leakage_by_utility(without) is None
