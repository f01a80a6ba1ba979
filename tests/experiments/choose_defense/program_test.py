"""The program: a grid trained, attacked and judged; flags that do not fit."""

import json

import jax
import numpy as np
import pytest

from experiments.aia import pipeline
from experiments.aia import program as aia_program
from experiments.choose_defense import audited, candidates
from experiments.choose_defense.program import PROGRAM
from experiments.tabular import federation
from fljax import data, privacy, results
from fljax.defenses import specs
from fljax.driver.config import ConfigError

_TINY = (
    "--num_rounds=6", "--model_hidden=8", "--learning_rate=0.1", "--attack_kinds=model",
    "--seeds=0,1",
)  # fmt: skip


@pytest.fixture
def run(tmp_path, parsed):
    def call(*arguments):
        told = (*_TINY, f"--run_dir={tmp_path / 'out'}", *arguments)
        PROGRAM.run(parsed(PROGRAM, *told))

    return call


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("--defenses=none", "--defenses: expected at least one defense"),
        ("--defenses=dp_sgd(clip=1)", "--defenses: dp_sgd: expected one of sigma"),
        ("--defense=median", "--defense: expected none, the grid is in --defenses"),
        ("--sweep=batch_size=8", "--sweep: expected none"),
        ("--transcript=seen", "--transcript: expected none"),
        ("--stop_at_epsilon=8", "--stop_at_epsilon: of experiments.aia alone"),
        ("--save_guesses", "--save_guesses: of experiments.aia alone"),
        ("--attack_kinds=", "--attack_kinds: expected attacks"),
        ("--audited=all", "--audited=all: is of --audit_trainings, got none"),
        ("--attack_knows_defense=false", "--attack_knows_defense: expected true"),
    ],
)
def test_flags_that_do_not_fit_are_refused(run, told, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        run(told)
    assert not (tmp_path / "out").exists()


def test_bounds_are_not_asked_for_of_a_number(run, tmp_path):
    told = "--data_sensitive=bmi", "--most_beyond=5"
    with pytest.raises(ConfigError, match="--most_beyond: .*bounds are of accuracies"):
        run("--defenses=dp_sgd(clip=1, sigma=1)", *told)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "spec", ["fed_sdp(clip=1, sigma=1)", "fed_cdp(clip=1, sigma=1)"]
)
def test_canaries_are_rows_that_batches_may_leave_out(run, spec):
    grid = f"--defenses=dp_sgd(clip=1, sigma=1); median; {spec}"
    with pytest.raises(ConfigError, match=r"--audit_trainings: .*got fed_"):
        run(grid, "--audit_trainings=100")


@pytest.mark.slow
def test_a_grid_is_trained_attacked_and_judged(run, tmp_path, capsys):
    grid = "--defenses=dp_sgd(clip=1|3, epsilon=8); median"
    run(grid, "--audit_trainings=100", "--audited=all")
    shown = capsys.readouterr().out
    assert "Recommended: dp_sgd" in shown
    assert "audited epsilon, at least (95 %)" in shown
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    names = [f"dp_sgd(clip={clip}, epsilon=8)" for clip in (1, 3)]
    judged = {*manifest["why_not"], *manifest["diverged"], manifest["recommended"]}
    assert judged - {None} == {"none", "median", *names}
    rows = results.read_rows(tmp_path / "out" / "rows.jsonl")
    assert {row.experiment for row in rows} == {"choose_defense"}
    spent = [row for row in rows if row.defense == names[0] and row.client == "all"]
    once, tuned, sigma = (
        [row.value for row in spent if row.metric == metric]
        for metric in (
            "epsilon_rdp", "epsilon_rdp_with_choice_of_clip", "noise_multiplier",
        )
    )  # fmt: skip
    assert 7.9 < once[0] <= 8 < tuned[0]
    proven = [row for row in rows if row.metric == "epsilon_audited"]
    assert {row.defense for row in proven} == set(names)
    assert all(0 <= row.value <= 8 for row in proven)  # so few prove little
    steps = 2 * 6 * 7  # clips, rounds, batches of a client
    assert tuned[0] == privacy.epsilon(sigma[0], 1 / 7, steps, 1e-5)
    assert (tmp_path / "out" / "choice.svg").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_trainings_that_are_charged_together_share_no_draws(parsed, apart):
    # Nothing but noise, in proportion to the clip: two trainings in the same noise cancel it.
    grid = (f"defense=dp_sgd(clip={clip}, sigma=1e4)" for clip in (1e-4, 2e-4))
    told = parsed(
        aia_program.PROGRAM, *_TINY, "--num_rounds=2", "--seeds=0",
        "--partition_clients=20", "--participation=uniform", "--fraction=0.5",
        f"--sweep={'; '.join(grid)}",
    )  # fmt: skip
    prepared = aia_program.start(aia_program.Settings(*told), apart=apart).prepare()
    found = []
    for point in prepared.points:
        ran = federation.train(point.problem, chunk=2, progress=lambda done: None)
        sent, client = ran.transcript.params, ran.transcript.client
        begun = [np.ravel(leaf[0, 0]) for leaf in jax.tree.leaves(sent)]
        moved = [np.ravel(leaf[0, 1] - leaf[0, 0]) for leaf in jax.tree.leaves(sent)]
        found.append((np.concatenate(moved), np.asarray(client), np.concatenate(begun)))
    (first, who, start), (other, whom, again) = found
    np.testing.assert_array_equal(start, again)
    assert (np.corrcoef(first, other)[0, 1] > 0.99) == (not apart)
    assert (who == whom).all() == (not apart)
    assert not apart or abs(np.corrcoef(first, other)[0, 1]) < 4 / len(first) ** 0.5


def _epsilons(parsed, text, seen):
    """Metric -> epsilon, of a defense against one adversary."""
    told = parsed(
        aia_program.PROGRAM, *_TINY, f"--defense={text}", f"--adversary={seen}"
    )
    made = pipeline.prepare(data.load("diabetes"), aia_program.Settings(*told), "")
    grid = (specs.NONE, specs.parse(text))
    return {row.metric: row.value for row in candidates.epsilon_rows(made, grid)}


_SERVER = "fed_sdp(clip=1, sigma=1, where=server)"
_WEAK = "fed_sdp(clip=1, sigma=0.1)"
_BOTH = {f"client_{candidates.EPSILON}", f"client_{candidates.TUNED}"}


@pytest.mark.parametrize(
    ("seen", "names"), [("messages", set()), ("sum", set()), ("models", _BOTH)]
)
def test_noise_of_a_server_promises_to_who_sees_less_alone(parsed, seen, names):
    assert _epsilons(parsed, _SERVER, seen).keys() == names


def test_of_two_noises_the_epsilon_is_of_the_one_against_who_attacks(parsed):
    both = f"{_SERVER} + {_WEAK}"
    assert _epsilons(parsed, both, "messages") == _epsilons(parsed, _WEAK, "messages")
    assert _epsilons(parsed, both, "models") == _epsilons(parsed, _SERVER, "models")


def test_canaries_train_with_the_loss_of_the_clients(parsed, monkeypatch):
    told = (*_TINY, "--dropout=0.5", "--defense=dp_sgd(clip=1, sigma=1)")
    prepared = aia_program.start(parsed(aia_program.PROGRAM, *told)).prepare()
    planted = []
    monkeypatch.setattr(
        privacy, "plant", lambda method, loss, *_, **__: planted.append(loss)
    )
    monkeypatch.setattr(privacy, "audit", lambda *_, **__: None)
    audited.of(prepared.points[0], 2, print)
    assert planted == [prepared.points[0].problem.method.loss_fn]
    assert planted[0].rate == 0.5
