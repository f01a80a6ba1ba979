"""Which trainings are tried in place of the declared one."""

from fljax.attacks.adversary import LocalTraining
from fljax.auditing import slips


def _decays(optimiser, decay):
    told = LocalTraining(0, 0.1, 1, optimiser=optimiser, weight_decay=decay)
    return {(t.optimiser, t.weight_decay) for t in slips._with_decays(told)}


def test_other_weight_decays_are_tried():
    both = {(name, decay) for name in ("adam", "adamw") for decay in (0.1, 0.01)}
    assert _decays("adam", 0.0) == both
    assert _decays("adamw", 0.1) == both - {("adamw", 0.1)} | {
        ("adam", 0.0), ("adamw", 0.0),
    }  # fmt: skip
    assert _decays("sgd", 0.01) == {("sgd", 0.0), ("sgd", 0.1)}
    assert _decays("rmsprop", 0.0) == set()
