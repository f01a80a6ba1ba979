"""The benchmark of false alarms counts what audits say."""

from experiments.benchmarks import false_alarms


def test_an_audit_with_two_leaks_is_one_alarm(monkeypatch):
    said = [["last_layer", "class_gradients"], ["last_layer"], *[[]] * 18]
    monkeypatch.setattr(false_alarms, "alarms", lambda kind, number, seed: iter(said))
    flags = false_alarms.Flags(audits=20, kinds=("labels",))
    (row,), (target,) = false_alarms.benchmark(flags)
    assert (row["alarms"], row["percent"]) == (2, 10.0)
    assert row["by_attack"] == "last_layer 2, class_gradients 1"
    assert target.value == 0.1 and target.met
