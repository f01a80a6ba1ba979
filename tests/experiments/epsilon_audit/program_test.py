"""Flags that name canaries, the figure, and a small run that is stopped and goes on."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.epsilon_audit import federation, figure, program, settings
from experiments.epsilon_audit.report import REPORT
from experiments.report.cards import Card
from fljax import results
from fljax.driver.config import ConfigError
from fljax.results import Row


def _rows():
    for budget, audited in ((1.0, 0.5), (2.0, 1.5)):
        for metric, value in (
            ("epsilon_audited", audited),
            ("epsilon_reachable", 0.9 * budget),
            ("epsilon_accounted", budget),
            ("audited_of_accounted_percent", 100 * audited / budget),
        ):
            yield Row(
                "epsilon_audit", "diabetes", "mlp", "dp_sgd", "messages", "gradient",
                f"epsilon={budget:g}", 0, "all", metric, value, 100,
            )  # fmt: skip


def test_the_figure_shows_what_is_audited_against_what_is_accounted():
    (axes,) = figure.audited_by_accounted(list(_rows())).axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines["messages"] == [[1, 0.5], [2, 1.5]]
    assert lines["accounted"] == [[0, 0], [2, 2]]
    assert figure.audited_by_accounted([]) is None


def test_the_report_says_how_much_was_shown():
    card = Card._make([None] * len(Card._fields))._replace(rows=list(_rows()))
    (said,) = REPORT.sentences([card])
    assert "messages 50 to 75 %" in said


def test_a_flag_names_a_canary_and_what_it_is_compared_with():
    assert str(settings.canary("row")) == "one record: row against left out"
    assert settings.canary("client:replace").neighbours == "replace"
    assert settings.canary("row:sensitive", [[0], [1]]).values == [[0], [1]]


@pytest.mark.slow
def test_data_without_a_sensitive_column_have_no_such_canary():
    told = SimpleNamespace(values=np.zeros((0, 1)), table=SimpleNamespace(name="mine"))
    with pytest.raises(ConfigError, match="--canaries=row:sensitive: .* got mine"):
        federation.planted(told, "row:sensitive")


def test_so_many_clients_at_once_prove_nothing_at_a_large_delta():
    run = settings.Config(
        mode="one_run", canaries=("client",), clients=2000, delta=1e-3, planted=50
    )
    told = SimpleNamespace(run=run)
    with pytest.raises(ConfigError, match="--delta: .* 0.1 / --clients = 5e-05 at"):
        settings.check(told)


@pytest.mark.parametrize(
    ("told", "named"),
    [
        pytest.param(  # a row is in a step less often than delta
            {"batch_size": 8},
            "--delta: at 0.1 the epsilon of a canary 'gradient' is 0",
            marks=pytest.mark.slow,  # looks for a noise that there is not
        ),
        pytest.param(
            {"canaries": ("gradient", "row:sensitive")},
            "--canaries=row:sensitive: expec",
            marks=pytest.mark.slow,
        ),
        (
            {"mode": "one_run", "planted": 200, "delta": 1e-6, "hidden": 1},
            "--planted: count: expected at most",
        ),
    ],
    ids=["delta", "canary of the second audit", "too many canaries"],
)
def test_what_cannot_be_audited_is_refused_before_any_training(told, named):
    small = {"num_rounds": 1, "local_steps": 1, "hidden": 2, "epsilons": (4.0,)}
    run = settings.Config(**(small | told))
    data = settings.DataConfig(name="breast_cancer")
    with pytest.raises(ConfigError, match=named):
        program.start(settings.Settings(data, run)).prepare()


@pytest.mark.slow
def test_a_small_run_keeps_its_bounds_in_order(tmp_path):
    command = [
        sys.executable, "-m", "experiments.epsilon_audit", "--trainings=200",
        "--num_rounds=2", "--epsilons=4", "--canaries=gradient,client",
        f"--run_dir={tmp_path}",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    found = results.read_rows(tmp_path / "rows.jsonl")
    values = {(r.setting, r.attack, r.metric): r.value for r in found}
    for canary in ("gradient", "client"):
        for observer in ("messages", "sum", "models", "final"):
            at = canary, observer
            assert values[*at, "epsilon_audited"] <= values[*at, "epsilon_accounted"]
    assert (tmp_path / "epsilon_by_observer.svg").exists()


@pytest.mark.slow
def test_too_few_canaries_on_one_side_are_refused_before_the_training(tmp_path):
    command = [
        sys.executable, "-m", "experiments.epsilon_audit", "--mode=one_run",
        "--planted=20", "--delta=0.004", "--epsilons=4", "--num_rounds=2", "--clients=2",
        "--seed=12", f"--run_dir={tmp_path}",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode and "Traceback" not in done.stderr
    assert "--planted: expected coins to let 8 canaries in" in done.stderr
