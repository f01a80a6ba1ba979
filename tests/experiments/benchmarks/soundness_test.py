"""The benchmark of soundness counts audits above what is accounted."""

from types import SimpleNamespace

import pytest

from experiments.benchmarks import soundness
from fljax.privacy.audits import OBSERVERS


def test_only_what_is_above_the_account_counts(monkeypatch):
    def audit(low):
        found = SimpleNamespace(epsilon=low)
        return SimpleNamespace(accounted=1.0, audited=dict.fromkeys(OBSERVERS, found))

    monkeypatch.setattr(soundness, "planted", lambda *_: None)
    monkeypatch.setattr(soundness, "proved", lambda *_: map(audit, [0.5, 1.0, 1.1, 0]))
    flags = soundness.Flags(audits=4, canaries=("client",), epsilons=(1.0,))
    rows, targets = soundness.benchmark(flags)
    assert [row["above"] for row in rows] == [1] * len(OBSERVERS)
    assert rows[0]["percent"] == 25.0 and rows[0]["median"] == 0.75
    assert all(target.value == 0.25 and target.met for target in targets)


@pytest.mark.slow
@pytest.mark.parametrize("canary", soundness.CANARIES)
def test_mechanisms_that_keep_their_word_are_seldom_above_it(canary):
    """Ten audits: more than three above have one chance in a thousand."""
    federation = soundness.planted(soundness.CANARIES[canary], 0)
    found = [*soundness.proved(federation, 2.0, 10, 250, 0)]
    for observer in OBSERVERS:
        low = [each.audited[observer].epsilon for each in found]
        assert sum(each > found[0].accounted for each in low) <= 3
    assert max(each.audited["messages"].epsilon for each in found) > 0
