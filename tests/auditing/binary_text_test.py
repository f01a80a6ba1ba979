"""Columns of two texts: as many inputs as the recorded model has, and said in words."""

import numpy as np
import pandas as pd
import pytest

from fljax import transcript
from fljax.auditing import case, inputs

_FRAME = pd.DataFrame(
    {
        "age": [1.0, 2.0, 3.0, 4.0],
        "smokes": ["no", "yes", "yes", "no"],
        "married": ["a", "b", "a", "b"],
        "client": [4, 4, 7, 7],
        "y": [1.0, 2.0, 3.5, 4.0],
    }
)


@pytest.fixture
def prepared(tmp_path, config):
    """`(width, **flags) -> Case` of a linear model with so many inputs."""
    _FRAME.to_csv(tmp_path / "rows.csv", index=False)

    def prepare(width, **flags):
        model = {"kernel": np.zeros((width, 1)), "bias": np.zeros(1)}
        moved = {name: leaf + 1 for name, leaf in model.items()}
        (tmp_path / "seen.npz").unlink(missing_ok=True)
        with transcript.Recorder(tmp_path / "seen", {"optimiser": "sgd"}) as recorder:
            recorder.record(0, model, {4: moved, 7: model})
        chosen = config(tmp_path, **flags)
        return case.prepare(chosen, inputs.read(chosen.files, chosen.rows))

    return prepare


@pytest.mark.parametrize("order", ["file", "dummies"])
def test_the_model_tells_whether_two_texts_are_two_inputs(prepared, order):
    one = prepared(3, input_order=order)
    assert one.encoding.columns.names == ("age", "smokes_yes", "married_b")
    assert one.notes == []
    two = prepared(5, input_order=order)
    assert two.encoding.columns.names == (
        "age", "smokes_no", "smokes_yes", "married_a", "married_b"
    )  # fmt: skip
    assert two.encoding.columns.candidates.shape == (2, 2)
    (said,) = two.notes
    assert said.startswith("smokes, married: two inputs each")
    assert "the model has 5 inputs (--binary_text)" in said
    assert ("say --input_order=dummies" in said) == (order == "file")


def test_of_two_refusals_the_one_with_a_hint_is_told(prepared):
    with pytest.raises(transcript.TranscriptError, match="; they look like linear"):
        prepared(5, model="mlp:7")


@pytest.mark.parametrize(("width", "flag"), [(3, "two"), (5, "one"), (4, "auto")])
def test_what_does_not_fit_is_refused_with_the_inputs_as_told(prepared, width, flag):
    with pytest.raises(
        transcript.TranscriptError, match="not those of --model"
    ) as said:
        prepared(width, binary_text=flag)
    told = 5 if flag == "two" else 3
    assert f"TabularDense_0/kernel [{told}, 1]" in str(said.value)


def test_the_flag_needs_no_words(prepared):
    assert prepared(5, binary_text="two").notes == []
    assert prepared(3, binary_text="one").notes == []
