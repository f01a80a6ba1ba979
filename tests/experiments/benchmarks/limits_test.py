"""The benchmark of a device's limits, at a tiny size."""

from experiments.benchmarks import limits


def test_every_precision_is_timed_beside_its_error():
    rows, (target,) = limits.run(limits.Config(repeats=1, smoke=True))
    *products, copy = rows
    assert [row["what"] for row in products] == list(limits._KINDS)
    assert all(row["teraflops"] > 0 for row in products) and copy["gigabytes"] > 0
    errors = {row["what"]: row["error"] for row in products}
    assert 1e-3 < errors["bfloat16"] < 1e-2 and target.met
    assert target.value == errors["float32, highest"] < 1e-6
