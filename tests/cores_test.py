"""How many cores a process may use."""

import os

import jax
import pytest

from fljax import cgroups, cores, parallel

_ALL = len(os.sched_getaffinity(0))


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    "quota, expected",
    [("100000 100000", 1), ("50000 100000", 1), ("max 100000", _ALL), ("", _ALL)],
)
def test_a_quota_of_version_2_limits(tmp_path, quota, expected):
    _write(tmp_path / "cpu.max", quota)
    assert cores.available(tmp_path) == expected


@pytest.mark.parametrize("quota, expected", [("100000", 1), ("-1", _ALL)])
def test_a_quota_of_version_1_limits(tmp_path, quota, expected):
    _write(tmp_path / "cpu" / "cpu.cfs_quota_us", quota)
    _write(tmp_path / "cpu" / "cpu.cfs_period_us", "100000")
    assert cores.available(tmp_path) == expected


def test_a_quota_of_two_cores_of_a_large_machine(tmp_path, monkeypatch):
    _write(tmp_path / "cpu.max", "200000 100000")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    assert cores.available(tmp_path) == 2


def test_the_groups_above_limit_too(tmp_path, monkeypatch):
    _write(tmp_path / "groups", "0::/outer/inner")
    monkeypatch.setattr(cgroups, "_GROUP_OF_PROCESS", tmp_path / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    _write(tmp_path / "outer" / "cpu.max", "300000 100000")
    _write(tmp_path / "outer" / "inner" / "cpu.max", "max 100000")
    assert cores.available(tmp_path) == 3


def test_without_control_groups_the_affinity_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5})
    assert cores.available(tmp_path) == 2


def test_devices_follow_the_quota_and_are_two_at_least(monkeypatch):
    chosen = {}
    monkeypatch.setattr(jax.config, "_read", None, raising=False)
    monkeypatch.setattr(jax.config, "update", chosen.__setitem__)
    monkeypatch.setattr(type(jax.config), "jax_num_cpu_devices", -1)
    for quota, devices in ((1, 2), (2, 2), (5, 5)):
        monkeypatch.setattr(cores, "available", lambda quota=quota: quota)
        parallel.use_cpu_cores()
        assert chosen == {"jax_num_cpu_devices": devices}
