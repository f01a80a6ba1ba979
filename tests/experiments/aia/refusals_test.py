"""What the program refuses: one line that names it, and nothing is written."""

import sys
import types

import jax
import numpy as np
import pytest

from experiments.aia import program, saved
from fljax.attacks.estimates import Prediction
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.transcript import TranscriptError, sums
from fljax.types import Transcript


def _assert_refused(code, errors, named):
    assert code == 2
    lines = [line for line in errors.splitlines() if "warning" not in line]
    assert len([line for line in lines if named in line]) == 1
    assert "Traceback" not in errors


def _of_nan(leaf):
    return np.full_like(leaf, np.nan)


def _csv(tmp_path, text):
    path = tmp_path / "own.csv"
    path.write_text(text)
    return [
        "--data_name=csv", f"--data_path={path}", "--data_target=pay",
        "--data_sensitive=sex",
    ]  # fmt: skip


_GOOD = "sex,age,pay\n" + "m,30,1.5\nf,40,2.5\n" * 30
_BAD = {
    "unknown flag": (["--batch_sise=3"], "batch_sise"),
    "unknown choice": (["--model_name=cnn"], "--model_name"),
    "unknown data set": (["--data_name=diabetis"], "diabetis"),
    "no batch": (["--batch_size=0"], "--batch_size"),
    "more clients than rows": (
        ["--partition_clients=1000"],
        "--partition_clients: expected an integer in [1, 397], got 1000, with --partition_k"),
    "more shards than rows": (
        ["--data_name=breast_cancer", "--partition_kind=label_shards",
         "--partition_shards=1000"], "--partition_shards: expected an integer in [1, 25"),
    "another kind of data": (["--partition_kind=label_shards"],
                             "--partition_kind=label_shards: needs class labels"),
    "h too large": (["--partition_heterogeneity=0.6"], "--partition_heterogeneity"),
    "missing file": (["--data_name=csv", "--data_path=no.csv", "--data_target=y",
                      "--data_sensitive=s"], "no.csv"),
    "missing option": (["--data_name=csv"], "the option --data_path= is required"),
    "option of another data set": (["--data_states=LA"], "states"),
    "column of a partition": (["--partition_kind=by_column",
                               "--partition_column=state"], "--partition_column"),
    "column without its partition": (["--partition_column=sex"],
                                     "is of --partition_kind=by_column or ordered"),
    "concentration of another partition": (
        ["--partition_kind=iid", "--partition_alpha=0.1"], "--partition_alpha=0.1"),
    "share of all": (["--fraction=0.5"], "is of --participation=uniform or poisson"),
    "what SGD keeps": (["--optimiser_state=kept"],
                       "is of --client_optimiser=momentum or adam, got sgd"),
    "nothing but a last batch": (["--drop_last", "--batch_size=10000"],
                                 "--drop_last: expected clients with --batch_size=10000"),
    "dropout of nothing": (["--dropout=0.5", "--model_name=linear"],
                           "--dropout: expected a model with hidden units"),
    "mu of FedAvg": (["--proximal=1"], "is of --algorithm=fed_prox, got fed_avg"),
    "sums of more than there are": (
        ["--partition_clients=2", "--adversary=sum", "--sum_of=2,5"],
        "--sum_of: expected at most the 2 clients of a round, got 5"),
    "repeated seed": (["--seeds=1,1"], "--seeds"),
    "diverging": (["--learning_rate=1e6"], "--learning_rate=1e+06"),
    "reconstruct a network": (["--attack_kinds=reconstruct"], "--attack_kinds"),
    "sweep of nothing": (["--sweep=batchsize=3"], "--sweep"),
    "no sensitive attribute": (["--data_name=digits"], "--data_sensitive"),
    "gradients of a number": (["--data_sensitive=bmi"], "--attack_kinds"),
    "labels of a number": (["--partition_kind=dirichlet"], "--partition_kind"),
    "diverging in the last round": (["--num_rounds=1", "--learning_rate=1e38"],
                                    "round 0"),
    "too few messages": (["--data_name=toy", "--model_name=linear",
                          "--attack_kinds=reconstruct"], "--num_rounds"),
    "unknown table": (["--paper_table=tabel9"], "--paper_table"),
    "no transcript": (["--transcript=nowhere"], "--transcript: expected the path of a"),
    "no transcript, nothing run": (
        ["--transcript=nowhere", "--dry_run"], "nowhere.json is not there"),
    "points that no file can be called": (
        ["--save_transcript", "--sweep=learning_rate=0.1;learning_rate=0." + "1" * 240],
        "--save_transcript: the points of --sweep"),
}  # fmt: skip


@pytest.mark.parametrize("arguments, named", _BAD.values(), ids=_BAD)
def test_bad_input_is_one_line_and_leaves_nothing(run, tmp_path, arguments, named):
    code, _, errors = run(*arguments)
    _assert_refused(code, errors, named)
    assert not (tmp_path / "out").exists()


_BAD_CSV = {
    "malformed": (_GOOD + "m,1,2,3,4\n", [], "own.csv"),
    "target is text": (_GOOD.replace("1.5", "lots", 1), [], "pay"),
    "target is classes": (_GOOD.replace(",1.5", ",low"), [], "pay"),
    "no sensitive column": (_GOOD, ["--data_sensitive=gender"], "gender"),
    "constant sensitive column": (_GOOD.replace("f,", "m,"), [], "sex"),
    "missing values": (_GOOD + ",30,1.5\n", [], "in sex (1); --data_missing=drop"),
    "text target": ("sex,age,pay\n" + "m,1,low\nf,2,high\n" * 9, [], "--data_task="),
}


@pytest.mark.parametrize("text, more, named", _BAD_CSV.values(), ids=_BAD_CSV)
def test_bad_csv_is_one_line_and_leaves_nothing(run, tmp_path, text, more, named):
    code, _, errors = run(*_csv(tmp_path, text), *more)
    _assert_refused(code, errors, named)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_configuration_is_refused_untouched(run, tmp_path):
    assert run("--attack_kinds=model")[0] == 0
    before = (tmp_path / "out" / "rows.jsonl").read_bytes()
    code, _, errors = run("--attack_kinds=model", "--batch_size=16")
    _assert_refused(code, errors, "--run_dir")
    assert (tmp_path / "out" / "rows.jsonl").read_bytes() == before
    assert run("--attack_kinds=model")[0] == 0


def test_a_tampered_transcript_is_refused(run, tmp_path):
    run("--save_transcript", "--attack_kinds=model", folder="a")
    path = tmp_path / "a" / "transcript-seed0.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    code, _, errors = run(f"--transcript={path.with_suffix('')}")
    _assert_refused(code, errors, "transcript-seed0.npz")
    assert not (tmp_path / "out").exists()


def test_a_transcript_of_other_rows_is_refused(run, tmp_path):
    run("--save_transcript", "--attack_kinds=model", folder="a")
    stem = tmp_path / "a" / "transcript-seed0"
    code, _, errors = run(f"--transcript={stem}", "--seeds=1")
    _assert_refused(code, errors, "transcript-seed0")
    assert "other rows" in errors


@pytest.mark.slow
def test_a_transcript_of_another_training_is_refused_where_that_matters(run, tmp_path):
    run("--save_transcript", "--attack_kinds=model", folder="a")
    stem = tmp_path / "a" / "transcript-seed0"
    other = (f"--transcript={stem}", "--local_epochs=2")
    code, _, errors = run(*other, "--attack_kinds=trajectory")
    _assert_refused(code, errors, "--local_epochs=1")
    assert run(*other, "--attack_kinds=model", folder="b")[0] == 0
    code, _, errors = run(
        f"--transcript={stem}", "--attack_kinds=model", 
        "--defense=dp_sgd(clip=1, sigma=1)", folder="c",
    )  # fmt: skip
    _assert_refused(code, errors, "--defense=none")


@pytest.mark.slow
def test_a_transcript_too_short_to_reconstruct_is_refused(run, tmp_path):
    toy = ("--data_name=toy", "--model_name=linear")
    run(*toy, "--save_transcript", "--attack_kinds=model", folder="a")
    stem = tmp_path / "a" / "transcript-seed0"
    code, _, errors = run(
        *toy, "--attack_kinds=reconstruct", f"--transcript={stem}", "--num_rounds=60"
    )
    _assert_refused(code, errors, "--transcript")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda seen: seen._replace(delta=jax.tree.map(_of_nan, seen.delta)), "finite"),
        (
            lambda seen: seen._replace(params=jax.tree.map(_of_nan, seen.params)),
            "finite",
        ),
        (
            lambda seen: sums.add_up(seen, sums.Server(np.arange(4), np.ones(4))),
            "sums over clients",
        ),
        (
            lambda seen: seen._replace(
                client=seen.client[:, :0], delta={"w": seen.delta["w"][:, :0]}
            ),
            "models without messages",
        ),
    ],
    ids=["messages", "models", "sums", "models alone"],
)
def test_a_transcript_that_only_an_audit_takes_is_refused(tmp_path, change, said):
    rounds, clients = 2, np.tile(np.arange(4), (2, 1))
    params = {"w": np.ones((rounds, 3), np.float32)}
    delta = {"w": np.ones((rounds, 4, 3), np.float32)}
    seen = change(Transcript(np.arange(rounds), clients, params, delta))
    with pytest.raises(TranscriptError, match=f"seen: it has .*{said}.*fljax-audit"):
        saved._check_messages("seen", seen)


def test_a_transcript_of_another_model_is_refused(run, tmp_path):
    run("--save_transcript", "--attack_kinds=model", folder="a")
    stem = tmp_path / "a" / "transcript-seed0"
    code, _, errors = run(f"--transcript={stem}", "--model_hidden=9")
    _assert_refused(code, errors, "transcript-seed0")


@pytest.mark.parametrize(
    "argument",
    [
        "--num_rounds=1000000000", f"--num_rounds={2**63}", "--lanes=1000000000",
        "--attack_grad_rounds=", "--attack_grad_learning_rates=",
    ],
)  # fmt: skip
def test_what_would_never_fit_is_refused_before_anything_is_built(run, argument):
    code, _, errors = run(argument)
    _assert_refused(code, errors, argument.partition("=")[0])


def test_a_share_of_clients_that_nobody_is_in_is_refused(run):
    code, _, errors = run("--participation=poisson", "--fraction=1e-9")
    _assert_refused(code, errors, "--fraction")


def test_a_sensitive_category_of_many_values_is_refused_as_in_an_audit(run, tmp_path):
    rows = [f"m{number % 7},{number % 5},{number}" for number in range(60)]
    told = _csv(tmp_path, "\n".join(["sex,age,pay", *rows]) + "\n")
    code, _, errors = run(*told, "--most_values=6")
    _assert_refused(
        code, errors, "--data_sensitive: sex has 7 different values, and attacks try "
        "each on every row; list it in --data_numeric if it is a number, join rare "
        "values, or allow so many with --most_values=7",
    )  # fmt: skip
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "own, said",
    [
        ("same", "--attack_kinds: two attacks have the name 'model'"),
        ("taken", "--attack_kinds: mine:taken and another attack both give 'model_x'"),
    ],
)
def test_numbers_of_two_attacks_are_not_taken_for_those_of_one(
    run, monkeypatch, own, said
):
    def found(view, settings):
        return {"model_x": Prediction(np.zeros(view.known.y.shape))}

    mine = types.SimpleNamespace(
        same=AttackSpec("model", Needs(), lambda view, _: {}),
        first=AttackSpec("model_x", Needs(), found),
        taken=AttackSpec("model", Needs(), found),
    )
    monkeypatch.setitem(sys.modules, "mine", mine)
    kinds = {"same": "model,mine:same", "taken": "mine:first,mine:taken"}
    code, _, errors = run(f"--attack_kinds={kinds[own]}")
    _assert_refused(code, errors, said)


@pytest.mark.parametrize("suffix", ["", ".npz", ".json"])
def test_what_is_kept_of_a_run_belongs_to_the_transcript_it_read(tmp_path, suffix):
    stem = tmp_path / "seen"
    told = types.SimpleNamespace(
        run=types.SimpleNamespace(transcript=f"{stem}{suffix}")
    )
    assert program._attacked(told) == []
    for end in (".npz", ".json"):
        stem.with_suffix(end).write_text("a")
    one = program._attacked(told)
    stem.with_suffix(".npz").write_text("b")
    assert len(one) == 2 and program._attacked(told) != one
