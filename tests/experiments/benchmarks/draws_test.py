"""The benchmark of random numbers, at a tiny size."""

import jax
import pytest

from experiments.benchmarks import draws

_TINY = draws.Config(counts=(8,), numbers=16, repeats=1)


@pytest.mark.slow
def test_every_generator_is_a_row_with_its_ratio():
    rows, (target,) = draws.run(_TINY)
    assert len(rows) == 16
    of = {(row["way"], row["what"]): row for row in rows}
    assert of["threefry, unrolled", "normals"]["ratio"] == 1
    assert of["inverse error function", "alone"]["ratio"] is None
    assert target.value > 0


def test_nothing_is_timed_when_other_numbers_are_drawn(monkeypatch):
    def other(key):
        return jax.random.fold_in(key, 1)

    monkeypatch.setattr(draws.draws, "unrolled", other)
    with pytest.raises(ArithmeticError, match="8 normals"):
        draws.run(_TINY)
