"""How the arrays of a transcript find their places in a model."""

from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import models
from fljax.auditing import architecture, in_order, normalisation
from fljax.auditing.settings import TrainingConfig
from fljax.transcript import TranscriptError
from fljax.types import Features, Model


def _built(spec, inputs=3):
    return architecture.build(TrainingConfig(model=spec), np.arange(inputs), 1)


def test_a_second_audit_of_the_same_network_finds_its_programs():
    one, other = _built("mlp:4"), _built("mlp:4")
    assert one.apply == other.apply and hash(one.apply) == hash(other.apply)
    assert _built("mlp:4", inputs=5).apply != one.apply


class _Net(nn.Module):
    """What users of flax have: an array in, `[1]` out."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(4)(x)))


def test_a_network_of_flax_is_a_model_by_from_flax():
    given = models.from_flax(_Net(), jnp.zeros(3))
    order = np.array([2, 0, 1])
    model = architecture.build(TrainingConfig(model="mine"), order, 1, given)
    params, x = given.init(jax.random.key(0)), jnp.arange(3.0)
    found = model.apply(params, Features(x, jnp.zeros(0, jnp.int32)))
    assert found == _Net().apply({"params": params}, x[order])[0]
    again = models.from_flax(_Net(), jnp.zeros(3))
    assert architecture.build(TrainingConfig(model="m"), order, 1, again) == model


def _tree(shapes):
    """Arrays `[R, ...]` and `[R, K, ...]` that are told apart by their values."""
    pairs = enumerate(shapes.items())
    arrays = {name: np.full(shape, n) for n, (name, shape) in pairs}
    params = {name: array[None] for name, array in arrays.items()}
    return params, {name: array[None, None] for name, array in arrays.items()}


def _placed(spec, shapes):
    """The model's name -> number of the array that went there."""
    found, delta = architecture.align(_built(spec), *_tree(shapes), "seen")
    assert jax.tree.map(np.max, found) == jax.tree.map(np.max, delta)
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): int(leaf.max())
        for path, leaf in jax.tree_util.tree_leaves_with_path(found)
    }


def test_equal_shapes_go_by_the_numbers_in_their_names():
    shapes = {
        "net.10.bias": (1,), "net.10.kernel": (4, 1), "net.0.bias": (4,),
        "net.0.kernel": (3, 4), "net.2.bias": (4,), "net.2.kernel": (4, 4),
    }  # fmt: skip
    assert _placed("mlp:4,4", shapes) == {
        "TabularDense_0/kernel": 3, "TabularDense_0/bias": 2, "Dense_0/kernel": 5,
        "Dense_0/bias": 4, "Dense_1/kernel": 1, "Dense_1/bias": 0,
    }  # fmt: skip


def test_the_models_own_names_need_no_numbers_to_agree():
    shapes = {
        "Dense_1/bias": (1,), "Dense_1/kernel": (3, 1), "Dense_0/bias": (3,),
        "Dense_0/kernel": (3, 3), "TabularDense_0/bias": (3,),
        "TabularDense_0/kernel": (3, 3),
    }  # fmt: skip
    assert _placed("mlp:3,3", shapes) == {
        name: number for number, name in enumerate(shapes)
    }


def test_names_that_do_not_tell_are_refused_with_those_that_do():
    shapes = {
        "front.bias": (4,), "front.kernel": (3, 4), "middle.bias": (4,),
        "middle.kernel": (4, 4), "end.bias": (1,), "end.kernel": (4, 1),
    }  # fmt: skip
    said = r"which of front.bias, middle.bias is which of TabularDense_0/bias, Dense_0"
    with pytest.raises(TranscriptError, match=said):
        _placed("mlp:4,4", shapes)


def test_layers_of_several_kinds_are_not_told_apart_by_numbers(tmp_path, monkeypatch):
    (tmp_path / "normed.py").write_text(
        "from fljax.models import mlp\n"
        "model = mlp(3, hidden=(4, 4), norm='layernorm')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    four = {f"arr_{number}": (4,) for number in (1, 2, 3, 5, 6, 7)}
    others = {"arr_0": (3, 4), "arr_4": (4, 4), "arr_8": (4, 1), "arr_9": (1,)}
    with pytest.raises(
        TranscriptError, match="cannot tell which of arr_1, arr_2, arr_3"
    ):
        _placed("normed:model", four | others)


def test_a_model_of_ones_own_reads_the_inputs_in_the_files_order(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import jax.numpy as jnp\n"
        "from fljax.types import Model\n"
        "model = Model(lambda key: [jnp.zeros(3)], lambda p, x: x.numeric @ p[0])\n"
        "def make():\n"
        "    return model\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("mine:model", "mine:make"):
        config = TrainingConfig(model=name)
        built = architecture.build(config, np.array([0, 2, 1]), 1)
        params, _ = architecture.align(built, *_tree({"weights": (3,)}), "seen")
        assert [leaf.shape for leaf in params] == [(1, 3)]
        row = architecture.Features(np.array([1.0, 2.0, 3.0]), np.zeros(0, int))
        assert built.apply([np.array([1.0, 10.0, 100.0])], row) == 231


_NORM = {
    "0/kernel": (3, 4), "0/bias": (4,), "1/weight": (4,), "1/bias": (4,),
    "3/kernel": (4, 1), "3/bias": (1,),
}  # fmt: skip
_STATISTICS = {"1/running_mean": (4,), "1/running_var": (4,)}


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (_NORM, r"1/bias, 1/weight are of normalisation layers \(LayerNorm or GroupN"),
        (
            {name.replace("weight", "kernel"): each for name, each in _NORM.items()},
            "1/bias, 1/kernel are of normalisation layers",  # as `.replace` makes them
        ),
        (
            {name.replace("/", "."): e for name, e in (_NORM | _STATISTICS).items()},
            r"1.running_mean, 1.running_var, 1.weight are .*\(BatchNorm\).*held constant",
        ),
        (
            {
                "0/kernel": (3, 4), "0/bias": (4,), "3/kernel": (4, 1), "3/bias": (1,),
                **_STATISTICS,
            },
            r"1/running_mean, 1/running_var are of .*\(BatchNorm\)",
        ),
    ],
    ids=["layer", "renamed", "batch", "without scale"],
)  # fmt: skip
def test_normalisation_layers_are_named_with_the_way_out(shapes, said):
    with pytest.raises(TranscriptError, match=said) as caught:
        _placed("mlp:4", dict(sorted(shapes.items())))
    assert "--model=package.module:attribute" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_other_arrays_of_one_axis_are_no_normalisation_layers():
    shapes = _NORM | {"1/weight": (1,), "extra": (4,)}
    del shapes["1/bias"]
    with pytest.raises(TranscriptError, match="not those of --model") as caught:
        _placed("mlp:4", shapes)
    assert "normalisation" not in str(caught.value)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"w1": (3, 64), "b1": (64,), "w2": (64, 1), "b2": (1,)}, "like mlp:64$"),
        ({"w1": (3, 6), "b1": (6,), "w2": (6, 5), "b2": (5,), "w3": (5, 1), "b3": (1,)},
         "look like mlp:6,5$"),
        ({"w": (3, 1), "b": (1,)}, "they look like linear$"),
        ({"w1": (64, 3), "b1": (64,), "w2": (1, 64), "b2": (1,)},
         r"like mlp:64, weights \[outputs, inputs\] to transpose$"),
        ({"w1": (3, 4), "b1": (4,), "w2": (4, 3), "b2": (3,)},
         r"like mlp:4 with 3 outputs, where the target makes 1 \(--task, --classes\)$"),
        ({"w1": (4, 64), "b1": (64,), "w2": (64, 1), "b2": (1,)}, r"w2 \[64, 1\]$"),
    ],
    ids=["a width", "two", "none", "transposed", "other outputs", "other inputs"],
)  # fmt: skip
def test_arrays_of_another_network_are_called_by_its_name(shapes, said):
    with pytest.raises(TranscriptError, match=said):
        _placed("mlp:4", shapes)


def test_columns_are_named_where_the_network_has_other_inputs():
    built = architecture.build(TrainingConfig(model="mlp:4"), np.arange(3), 1)
    shapes = {"w1": (5, 4), "b1": (4,), "w2": (4, 1), "b2": (1,)}
    names = ("age", "sex", "region_b")
    said = "5 inputs were trained on, the rows make 3: age, sex, region_b$"
    with pytest.raises(TranscriptError, match=said):
        architecture.align(built, *_tree(shapes), "s", names)
    built = architecture.build(TrainingConfig(model="mlp:4"), np.arange(20), 1)
    with pytest.raises(
        TranscriptError,
        match=r"make 20: x0, .*, x5, 8 more, x14, .*, x19 \(--drop leaves",
    ):
        architecture.align(built, *_tree(shapes), "s", [f"x{i}" for i in range(20)])


def _batch_norm(names):
    """A network of one batch norm, whose four arrays have these names."""
    scale, bias, mean, variance = names

    def apply(p, x):
        centred = (x.numeric - p[mean]) / p[variance]
        return (centred * p[scale] + p[bias]).sum()

    return Model(lambda key: {name: jnp.ones(3) for name in names}, apply)


def _aligned(names):
    recorded = ("1/weight", "1/bias", "1/running_mean", "1/running_var")
    given = _batch_norm(names)
    built = architecture.build(TrainingConfig(model="m"), np.arange(3), 1, given)
    return built, architecture.align(built, *_tree(dict.fromkeys(recorded, (3,))), "s")


def test_running_statistics_are_no_trained_parameters():
    names = ("1/weight", "1/bias", "1/running_mean", "1/running_var")
    built, (params, delta) = _aligned(names)
    assert [int(delta[name].max()) for name in names] == [0, 1, 0, 0]
    assert int(params["1/running_var"].max()) == 3
    at = {name: 1.0 + params[name][0] for name in names}
    row = Features(np.array([1.0, 2.0, 4.0]), np.zeros(0, int))
    slopes = jax.grad(built.apply)(at, row)
    assert [bool(slopes[name].any()) for name in names] == [True, True, False, False]
    with pytest.raises(TranscriptError, match="1/running_var, .*: some are running"):
        _aligned(("a", "b", "c", "d"))


def test_arrays_that_no_message_moves_are_held_constant():
    names = ("1/weight", "1/bias", "1/running_mean", "1/running_var")
    built, (params, delta) = _aligned(names)
    every = {name: leaf + 1 for name, leaf in delta.items()}
    assert architecture.still(every) == []
    nothing = {name: np.zeros_like(leaf) for name, leaf in delta.items()}
    assert architecture.still(nothing) == []
    held = in_order.holding(built, architecture.still(delta))
    (said,) = architecture.notes(architecture.still(delta))
    assert said.startswith("1/weight: the same in all messages")
    at = {name: 1.0 + params[name][0] for name in names}
    row = Features(np.array([1.0, 2.0, 4.0]), np.zeros(0, int))
    slopes = jax.grad(held.apply)(at, row)
    assert [bool(slopes[name].any()) for name in names[:2]] == [False, True]


def test_a_reader_is_told_of_batch_norm():
    def said(sent, moved, *names):
        params = {name: np.array(sent, float) for name in names}
        delta = {name: np.array(moved, float)[:, None] for name in names}
        recorded = SimpleNamespace(params=params, delta=delta)
        return "".join(normalisation.notes(recorded))

    still, to_and_fro = [1, 1], [0.5, -0.5]
    for name in ("1.running_mean", "batch_stats/norm/mean", "BatchNorm_0/var"):
        assert "never move" in said(still, [0, 0], name)
        # Sent as it was: clients have statistics of their own.
        for sent, moved in (([1, 2], [0, 0]), (still, to_and_fro)):
            assert said(sent, moved, name).startswith(
                "Batch norm: attacks take its run"
            )
    # Rounded models, or updates in their place, of statistics that are frozen.
    assert "never move" in said([3, 3], [1e-8, 0], "1.running_mean")
    assert "never move" in said([3, 3], [3, 3], "1.running_mean")
    assert not said([1, 2], still, "LayerNorm_0/mean", "var", "1/weight", "1/bias")
