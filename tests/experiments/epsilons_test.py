"""Which epsilon a reader is told."""

import json
import math

import numpy as np
import pytest

from experiments import epsilons
from fljax.results import Row

_ROW = Row(
    "aia", "toy", "mlp", "dp_sgd", "none", "defense", "", 0, "all", "epsilon_rdp", 2.0, 9
)  # fmt: skip


def _told(**values):
    return epsilons.stated(
        [_ROW._replace(metric=metric, value=value) for metric, value in values.items()]
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"epsilon_rdp": 2.0, "epsilon_pld": 1.5}, "1.5"),
        ({"epsilon_rdp": 2.0, "epsilon_pld": math.inf}, "2"),
        ({"client_epsilon_pld": 1.0, "epsilon_rdp": 2.0}, "2"),
        ({"client_epsilon_rdp": 3.0, "client_epsilon_pld": 1.0}, "1 of a client"),
    ],
    ids=["tightest", "finite", "record first", "client"],
)
def test_the_tightest_epsilon_is_told_of_a_record_first(values, said):
    assert _told(**values)["dp_sgd", ""].text == said


def test_the_epsilon_of_a_trainings_noise_names_whom_it_protects():
    drawn = {unit: epsilons.drawn(unit) for unit in ("record", "client")}
    assert [epsilons.drawn_for(text) for text in (*drawn.values(), "final")] == [
        "record", "client", ""
    ]  # fmt: skip
    row = _ROW._replace(metric="epsilon", attack="fed_cdp", setting=drawn["client"])
    told = epsilons.of_noise([row, row._replace(point="b", value=math.inf)])
    assert {key: each.text for key, each in told.items()} == {
        ("dp_sgd", "", "fed_cdp"): "2 of a client"
    }
    assert epsilons.of_noise([row._replace(metric="epsilon_rdp")]) == {}


@pytest.mark.parametrize(
    ("epsilon", "told"),
    [(2.5, 2.5), (np.float64(2.5), 2.5), (math.inf, "infinite"), (None, "no number")],
)
def test_manifests_have_numbers_or_words(epsilon, told):
    assert json.loads(json.dumps(epsilons.as_json(epsilon))) == told


def test_what_is_infinite_or_of_one_client_of_several_is_not_told():
    assert _told(epsilon_rdp=math.inf) == {}
    assert epsilons.stated([_ROW._replace(client=1)]) == {}
    both = [_ROW, _ROW._replace(seed=1, value=math.inf)]
    assert epsilons.stated(both) == {}
