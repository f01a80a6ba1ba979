"""Theorem 1's experiment: its messages, its numbers, and what it writes and refuses."""

import dataclasses
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from experiments.report.cards import card as card_of
from experiments.theory import mitm_server, program, settings, slopes, theorem1
from experiments.theory.mitm_server import Point
from experiments.theory.report import REPORT
from fljax import results
from fljax.driver import config

_SEEDS = (0, 1, 2, 3)
_ROWS, _PARAMS, _MESSAGES = 24, 3, 600
_POINTS = [
    Point(learning_rate=0.05, batch_size=b, local_epochs=e, num_messages=_MESSAGES)
    for b, e in ((24, 3), (4, 1))
]
_STEPS = np.array([3, 6])  # of a round


@pytest.fixture(scope="module")
def client():
    return mitm_server.generate(
        _SEEDS,
        num_rows=_ROWS,
        num_params=_PARAMS,
        target_noise=0.5,
        spread=2.0,
        offset=1.0,
    )


@pytest.fixture(scope="module")
def seen(client):
    """Sampling -> sent models and deltas, `[points, seeds, R, d]`."""
    return {
        sampling: mitm_server.messages(client, _POINTS, sampling, _SEEDS, 2.0)
        for sampling in ("shuffled", "independent")
    }


def _expected(client, sent):
    """Deltas of full-batch training, `W (sent - optimum)`, in closed form."""
    found = np.zeros_like(sent)
    for point, seed in np.ndindex(sent.shape[:2]):
        step = 2 * 0.05 / _ROWS * client.x[seed].T @ client.x[seed]
        left = np.linalg.matrix_power(np.eye(_PARAMS) - step, _STEPS[point])
        found[point, seed] = (sent[point, seed] - client.optimum[seed]) @ (
            np.eye(_PARAMS) - left
        )
    return found


@pytest.mark.slow
def test_full_batches_are_the_affine_map_of_the_theorem(client, seen):
    sent, delta = seen["shuffled"]
    expected = _expected(client, sent)[0]
    np.testing.assert_allclose(delta[0], expected, rtol=1e-4, atol=1e-5)


def test_independent_batches_follow_that_map_on_average(client, seen):
    sent, delta = seen["independent"]
    noise = delta - _expected(client, sent)
    error = noise.std(axis=2) / np.sqrt(_MESSAGES)
    assert (np.abs(noise.mean(axis=2)) < 5 * error).all()
    assert (error > 0).all()


def test_without_replacement_an_epochs_noise_nearly_cancels(client, seen):
    scale = {
        sampling: (delta - _expected(client, sent))[1].std()
        for sampling, (sent, delta) in seen.items()
    }
    assert scale["shuffled"] < 0.3 * scale["independent"]


def test_no_sent_model_depends_on_what_the_client_returned(client, seen):
    sent = seen["shuffled"][0]
    np.testing.assert_allclose(sent[0], sent[1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(sent, seen["independent"][0], rtol=0, atol=1e-5)
    spread = 2 / np.sqrt(_MESSAGES)
    assert (np.abs(sent[0].mean(axis=1) - client.centre) < 5 * spread).all()
    np.testing.assert_allclose(sent[0].std(axis=1), 2, rtol=0.2)
    apart = np.square(client.centre - client.optimum).mean(axis=1)
    np.testing.assert_allclose(apart, 2.0**2)


def test_the_right_hand_sides_are_those_of_the_paper(client, seen):
    sent, delta = seen["independent"]
    found = theorem1.measure(client, _POINTS, "independent", sent, delta, 0.1)
    point, seed = 1, 2
    x, y = client.x[seed], client.y[seed]
    gradients = np.stack([2 * (x @ s - y)[:, None] * x for s in sent[point, seed]])
    sigma, rng = found.noise[point, seed], np.random.default_rng(5)
    for noisiest in gradients.var(axis=1).argmax(axis=0):
        drawn = gradients[noisiest][rng.integers(0, _ROWS, (50_000, 4))].mean(axis=1)
        off = (drawn - gradients[noisiest].mean(axis=0)) / sigma
        assert np.exp(off**2).mean(axis=0).max() < 1.2 * np.e
    assert sigma > 1.4 * np.sqrt(gradients.var(axis=1).max() / 4)
    out = np.column_stack([delta[point, seed], np.ones(_MESSAGES)])
    smallest = np.linalg.eigvalsh(out.T @ out / _MESSAGES)[0]
    inner = 3 * 1 * 6 * (3 + 1 + np.log(2 * 3 / 0.1)) / (_MESSAGES * smallest)
    rate = 0.05 * sigma * 3 * np.sqrt(inner)
    least = np.linalg.eigvalsh(x.T @ x)[0]
    contraction = 1 - (1 - 2 * 0.05 / _ROWS * least) ** 6
    assert found.eigenvalue[point, seed] == pytest.approx(smallest)
    assert found.rate[point, seed] == pytest.approx(rate)
    assert found.bound[point, seed] == pytest.approx(rate / contraction)


def test_the_scale_of_normal_noise_is_that_of_its_definition():
    noise = np.random.default_rng(0).normal(size=(2, 200_000)) * [[1.0], [3.0]]
    expected = np.sqrt(2 / (1 - np.exp(-2)))  # E exp(z^2 / s^2) = (1 - 2 / s^2)^(-1/2)
    found = theorem1._scale(noise)
    np.testing.assert_allclose(found, [expected, 3 * expected], rtol=0.03)


def test_errors_stay_below_the_bound_and_full_batches_have_none(client, seen):
    for sampling, (sent, delta) in seen.items():
        found = theorem1.measure(client, _POINTS, sampling, sent, delta, 0.05)
        assert (found.reconstruct[1] < found.bound[1]).all()
        assert (found.forward[1] < found.bound[1]).all()
        if sampling == "shuffled":
            assert (found.reconstruct[0] < 1e-3).all()
            np.testing.assert_array_equal(found.noise[0], 0)


def test_many_noisy_messages_leave_algorithm_2_an_error(client, seen):
    sent, delta = seen["independent"]
    found = theorem1.measure(client, _POINTS, "independent", sent, delta, 0.05)
    assert (found.reconstruct[1] > 2 * found.forward[1]).mean() > 0.5


def test_the_limit_of_the_learning_rate_is_the_theorems(client):
    expected = min(_ROWS / (2 * np.linalg.eigvalsh(x.T @ x)[-1]) for x in client.x)
    assert mitm_server.largest_rate(client) == pytest.approx(expected)


def test_slopes_are_those_of_power_laws():
    values = [1.0, 2.0, 4.0, 8.0]
    numbers = np.stack([3 * np.power(values, -0.5), np.power(values, 2)], axis=1)
    np.testing.assert_allclose(slopes.slopes(values, numbers), [-0.5, 2])


def test_slopes_are_set_beside_those_of_the_bound_for_each_kind_of_batches():
    """In n_c they agree for shuffled batches only, and the output says so."""
    values = [1.0, 2.0, 4.0]

    def measured(*powers):
        numbers = np.stack([np.power(values, power) for power in powers], axis=1)
        other = np.ones((3, 2))
        rate = np.power(np.array(values)[:, None], -0.6) * other
        return theorem1.Measured(numbers, other, rate, other, other, other)

    found = {"shuffled": measured(-0.6, -0.6), "independent": measured(-0.2, -0.2)}
    sweep = slopes.Sweep("n_c", "messages", values, found)
    (line,) = slopes.differences({"num_messages": sweep})
    assert "n_c: slope of Algorithm 2 less that of eq. (6): " in line
    assert "0.00] with shuffled batches, +0.40 [" in line


_SMALL = settings.Config(
    rows=16,
    params=2,
    batch_size=4,
    num_messages=12,
    learning_rates=(0.05, 0.02),
    batch_sizes=(4, 8),
    epochs=(1, 2),
    messages=(8, 16),
    samplings=("shuffled",),
    seeds=(3, 5),
)


def _run(told):
    program.PROGRAM.run(settings.Settings(told))


@pytest.mark.slow
def test_a_run_writes_rows_manifest_and_figure(tmp_path, capsys, interrupted):
    folder = tmp_path / "out"
    again = dataclasses.replace(_SMALL, run_dir=str(tmp_path / "again"))
    assert interrupted(program.PROGRAM, settings.Settings(again), after=7) == 7
    _run(dataclasses.replace(_SMALL, run_dir=str(folder)))
    names = {"rows.jsonl", "manifest.json", "theorem1.svg"}
    assert {path.name for path in folder.iterdir()} == names
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["flags"]["rows"] == 16
    assert manifest["seconds"]["shuffled"]["run"] > 0
    rows = results.read_rows(folder / "rows.jsonl")
    points = {r.point for r in rows if r.metric == "optimum_distance"}
    assert points == {
        *("learning_rate=0.02", "learning_rate=0.05", "batch_size=4", "batch_size=8"),
        *("local_epochs=1", "local_epochs=2", "num_messages=8", "num_messages=16"),
    }
    assert {r.seed for r in rows} == {3, 5}
    assert all(np.isfinite(r.value) for r in rows)
    seen = {r.n for r in rows if r.point == "num_messages=8"}
    assert seen == {8}
    fitted = [r for r in rows if r.metric == "optimum_distance_slope"]
    assert len(fitted) == 4 * 2 * 2  # parameters, estimates, seeds
    assert rows == results.read_rows(tmp_path / "again" / "rows.jsonl")
    out = capsys.readouterr().out
    assert "Algorithm 2" in out and "n_c" in out


_BAD = {
    "one value": ({"messages": (16,)}, "--messages: expected at least 2"),
    "a value twice": ({"epochs": (2, 2)}, "--epochs: expected at least 2"),
    "no seeds": ({"seeds": ()}, "--seeds"),
    "a seed twice": ({"seeds": (1, 1)}, "--seeds"),
    "no sampling": ({"samplings": ()}, "--samplings"),
    "few rows": ({"rows": 2}, "--rows: full rank"),
    "full batch": ({"batch_sizes": (4, 16)}, "--batch_sizes: a full batch"),
    "few messages": ({"messages": (2, 8)}, "--messages: Algorithm 2 needs more"),
    "too many": ({"messages": (8, 10**9)}, "--messages: .* <= 1000000"),
    "too fast": ({"learning_rates": (0.1, 2.0)}, "--learning_rates: Theorem 1 holds"),
}


@pytest.mark.parametrize("changed, line", _BAD.values(), ids=_BAD)
def test_what_does_not_fit_is_one_line_and_leaves_nothing(tmp_path, changed, line):
    told = dataclasses.replace(_SMALL, run_dir=str(tmp_path / "out"), **changed)
    with pytest.raises(config.ConfigError, match=line) as error:
        _run(told)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_the_flagfile_parses(parsed):
    path = pathlib.Path("experiments/flags/theory.theorem1.flags")
    told = parsed(program.PROGRAM, f"--flagfile={path}").run
    assert told.seeds == tuple(range(10))


@pytest.mark.slow
def test_the_command_refuses_an_unknown_flag_in_one_line():
    done = subprocess.run(
        [sys.executable, "-m", "experiments.theory", "--batchsize=3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "batchsize" in done.stderr and len(done.stderr.splitlines()) == 1


def test_runs_are_told_apart(row):
    about = {"experiment": "theory", "attack": "reconstruct", "setting": "shuffled"}
    cards = []
    for name, slope in (("a", -0.5), ("b", 0.0)):
        made = [
            row._replace(**about, point="num_messages", metric=metric, value=value)
            for metric, value in (("optimum_distance_slope", slope),)
        ]
        made.append(
            made[0]._replace(attack="theorem1", metric="rate_slope", value=-0.6)
        )
        cards.append(card_of(name, made, {}, None))
    first, second = REPORT.sentences(cards)
    assert first.startswith("In run a: ") and "-0.5" in first
    assert second.startswith("In run b: ") and "-0.5" not in second
    assert not REPORT.sentences(cards[:1])[0].startswith("In run")
