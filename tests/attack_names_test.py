"""Names that say that no verdict is given."""

import pytest

from fljax import attack_names


@pytest.mark.parametrize(
    ("attack", "setting", "judged"),
    [
        ("grad", "passive", True),
        ("model", "active_50", True),
        ("grad_oracle", "passive", False),
        ("model_oracle_or_active", "active_50", False),
        ("model", "oracle", False),
        ("trajectory_permuted", "passive", False),
        ("model_other", "passive", False),
        ("model_global", "passive", False),
        ("trajectory_strangers", "passive", False),
        ("imputation", "rows_100", False),
        ("majority", "baseline", False),
        ("local_optimum", "local_steps=1", False),
    ],
)
def test_controls_and_what_was_chosen_with_the_truth_are_not_judged(
    attack, setting, judged
):
    assert attack_names.is_judged(attack, setting) == judged
