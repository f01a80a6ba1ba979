"""What an audit refuses: one line that names the flag or file, and nothing written."""

import json

import numpy as np
import pandas as pd
import pytest

from fljax import files, memory, transcript
from fljax.auditing import attacking, case, effort, inputs, padding, program
from fljax.driver.config import ConfigError

_FLAGS = {
    "no such column": ({"sensitive": "wed"}, "--sensitive: .*no column 'wed'"),
    "no such target": ({"target": "z"}, "--target: .*no column 'z'"),
    "no client column": ({"client_column": "c"}, "--client_column: .*no column 'c'"),
    "twice": ({"client_column": "married"}, "expected different columns"),
    "ids are no numbers": ({"client_column": "age"}, "expected whole numbers"),
    "whose rows": ({"client_column": None}, "--client: expected one client.*4, 7"),
    "unknown client": ({"client": (5,)}, "--client: .*no message of client 5"),
    "no transcript": ({"transcript": "nowhere"}, "--transcript: no file nowhere.npz"),
    "long path": ({"transcript": "x" * 300}, "--transcript: x{80}: File name too l"),
    "nobody": ({"transcript": "~nobody of this name/s"}, "--transcript: ~nobody of th"),
    "no rows": ({"known": "nowhere.csv"}, "nowhere.csv: no such file"),
    "widths": ({"model": "mlp:0"}, "--model: expected widths"),
    "other model": (
        {"model": "mlp:8"},
        r"TabularDense_0/kernel \[3, 8\], found out/bias \[1\], out/kernel \[3, 1\]",
    ),
    "no model": ({"model": "forest"}, "--model: expected linear, mlp:WIDTH"),
    "no module": ({"model": "nowhere:model"}, "nowhere:model cannot be imported"),
    "no attribute": ({"model": "json:model"}, "json:model cannot be imported"),
    "no Model": ({"model": "sys:version"}, "--model: expected sys:version to be a"),
    "unknown attack": (
        {"attacks": ("guess",)},
        "--attacks: unknown attack 'guess'; known: model, grad",
    ),
    "no spec": ({"attacks": ("sys:version",)}, "sys:version to be a .*AttackSpec"),
    "no attack": ({"attacks": ()}, "--attacks: expected each at most once, and one"),
    "no proxy": ({"proxy": "nowhere.csv"}, "--proxy: nowhere.csv: .*no such file"),
    "missing input": ({"drop": ("age",)}, r"found out/bias \[1\], out/kernel \[3, 1\]"),
}


@pytest.mark.parametrize("changes, said", _FLAGS.values(), ids=_FLAGS)
def test_flags_that_do_not_fit(linear, config, changes, said):
    _refused(linear, config(linear, **changes), said)


def _refused(folder, chosen, said):
    with pytest.raises((ConfigError, *program.PROGRAM.mistakes), match=said) as caught:
        program.PROGRAM.run(chosen)
    assert len(str(caught.value).splitlines()) == 1
    assert not (folder / "out").exists()


def test_a_pickled_array_is_not_read(linear, config):
    description = json.loads((linear / "seen.json").read_text())
    with np.load(linear / "seen.npz") as found:
        arrays = dict(found)
    arrays["round"] = np.array([{"not": "data"}], object)
    np.savez(linear / "seen.npz", allow_pickle=True, **arrays)
    description["sha256"] = files.sha256(linear / "seen.npz")
    (linear / "seen.json").write_text(json.dumps(description))
    _refused(linear, config(linear), "seen.npz: .*round")


def test_an_unfinished_transcript_says_how_to_finish_it(linear, config):
    (linear / "seen.npz").unlink()
    (linear / "seen.rounds").mkdir()
    _refused(linear, config(linear), r"is not finished.*Recorder\(STEM\).finish\(\)")


def test_a_changed_round_is_noticed(linear, config):
    content = bytearray((linear / "seen.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (linear / "seen.npz").write_bytes(content)
    _refused(linear, config(linear), "does not match its sha256")


def test_a_client_of_whom_nothing_is_finite(linear, config, record):
    def spoil(number, model, returned):
        returned[7]["out/kernel"][0] = np.inf

    record(linear / "seen", pd.read_csv(linear / "rows.csv"), change=spoil)
    _refused(linear, config(linear), "no message of client 7 is finite: 12 hold NaN")


def test_equal_messages_of_all_clients_are_refused_in_a_file_of_others(linear, config):
    seen, about = transcript.load(linear / "seen")
    for leaf in seen.delta["out"].values():
        leaf[:, 1] = leaf[:, 0]
    transcript.save(linear / "seen", seen, about)
    _refused(linear, config(linear), "seen: round 2: all clients returned equal models")


_ABOUT = {
    "batch_size": ("many", "expected an integer >= 0, got 'many'"),
    "learning_rate": (-1.0, "expected a number > 0"),
    "learning_rate ": ([0.1, 0], "expected a number > 0"),
    "local_epochs": (0.5, "expected an integer >= 1"),
    "num_rounds": (10**9, "expected an integer >= 1 and <= 1000000"),
    "client_optimiser": ([1], "expected a name"),
    "optimiser": (["sgd"], "expected a name"),
    "momentum": (-0.9, "expected a number >= 0"),
    "optimiser_state": ("fresh", "expected one of new, kept, got 'fresh'"),
    "drop_last": ("yes", "expected true or false, got 'yes'"),
    "dropout": (1, "expected a number >= 0 and < 1, got 1"),
    "optimizer_state": (True, "expected a name, got True"),
    "momentum ": (1.0, "expected a number >= 0 and < 1, got 1.0"),
    "weight_decay": ("small", "expected a number >= 0, got 'small'"),
}


@pytest.mark.parametrize("name", _ABOUT)
def test_a_description_is_a_strangers(linear, config, name):
    value, said = _ABOUT[name]
    seen, _ = transcript.load(linear / "seen")
    transcript.save(linear / "seen", seen, {name.strip(): value})
    _refused(linear, config(linear), f"seen.json: about, {name.strip()}: {said}")


def test_a_delta_that_is_none_is_refused_before_the_attacks(linear, config):
    seen, _ = transcript.load(linear / "seen")
    about = {"delta": 1.5, "defense": "dp_sgd(clip=1, epsilon=8)"}
    transcript.save(linear / "seen", seen, about)
    told = config(linear)
    read = inputs.read(told.files, told.rows)
    with pytest.raises(
        ValueError, match="seen.json: about, delta: .* > 0 and < 1, got"
    ):
        case.prepare(told, read)


def test_a_model_whose_output_is_no_prediction(linear, config, monkeypatch, tmp_path):
    (tmp_path / "theirs.py").write_text(
        "import jax.numpy as jnp\n"
        "from fljax.types import Model\n"
        "def pair():\n"
        "    return Model(lambda key: {'w': jnp.zeros((3, 2))},\n"
        "                 lambda params, x: x.numeric @ params['w'])\n"
        "def wide():\n"
        "    return Model(lambda key: jnp.zeros(5),\n"
        "                 lambda params, x: x.numeric @ params)\n"
        "class Odd(Exception):\n"
        "    pass\n"
        "def odd():\n"
        "    def apply(params, x):\n"
        "        raise Odd('five units')\n"
        "    return Model(lambda key: jnp.zeros(5), apply)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    _refused(
        linear, config(linear, model="theirs:pair"), r"shape \[\] for one row, got"
    )
    said = "--model: theirs:wide does not take a row of 3 inputs"
    _refused(linear, config(linear, model="theirs:wide"), said)
    said = (
        r"--model: theirs:odd does not take a row of 3 inputs \(--drop .*\): five units"
    )
    _refused(linear, config(linear, model="theirs:odd"), said)


def test_columns_that_were_not_seen_to_vary(linear, config):
    frame = pd.read_csv(linear / "rows.csv")
    frame.assign(city="Rome").to_csv(linear / "rows.csv", index=False)
    _refused(linear, config(linear), "column 'city' has one text .* list it in --drop")
    frame.assign(married=1).to_csv(linear / "rows.csv", index=False)
    _refused(linear, config(linear), "married")


def test_options_of_the_rows_are_named_as_flags(linear, config):
    frame = pd.read_csv(linear / "rows.csv")
    gap = frame.assign(age=frame.age.where(frame.index != 3))
    gap.to_csv(linear / "rows.csv", index=False)
    _refused(
        linear, config(linear), r"in age \(1\); --missing=drop .*, --missing=impute fi"
    )
    words = frame.assign(y=np.where(frame.y > 0, "high", "low"))
    words.to_csv(linear / "rows.csv", index=False)
    _refused(linear, config(linear), "choose --task=binary")


def test_a_sensitive_category_of_many_values_is_refused_with_the_way_out(
    linear, config
):
    frame = pd.read_csv(linear / "rows.csv")
    towns = frame.assign(town=[f"t{number % 30}" for number in range(len(frame))])
    towns.to_csv(linear / "rows.csv", index=False)
    few = {"sensitive": "town", "categorical": ("town",), "most_values": 20}
    said = "town has 30 different values, .*--most_values=30"
    _refused(linear, config(linear, **few), said)


_IDS = {
    "infinite": (["inf", "7"], "expected ids below 2.63, without .* got inf"),
    "rounded": (["9007199254740993.0", "7"], "expected ids below 2.63, .*got 9007"),
    "too large": (
        ["18446744073709551615", "7"],
        "expected ids below 2.63, .*got 18446",
    ),
    "nobody's": (["", "7"], "no client in 30 rows of 'client', the first in row 1 b"),
    "no integers": (["9" * 30, "7"], "--client_column: expected whole numbers"),
}


@pytest.mark.parametrize("name", _IDS)
def test_ids_that_would_be_others(linear, config, name):
    ids, said = _IDS[name]
    frame = pd.read_csv(linear / "rows.csv").assign(client=np.repeat(ids, 30))
    frame.to_csv(linear / "rows.csv", index=False)
    _refused(linear, config(linear), said)


def test_large_ids_are_exact(linear, config):
    large = [2**62 + 1, 2**62 + 2]
    seen, about = transcript.load(linear / "seen")
    ids = np.where(np.asarray(seen.client) == 4, *large)
    transcript.save(linear / "seen", seen._replace(client=ids), about)
    frame = pd.read_csv(linear / "rows.csv").assign(client=np.repeat(large, 30))
    frame.to_csv(linear / "rows.csv", index=False)
    told = config(linear, drop=("client",))  # which it is not, twice
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    assert ready.view.clients.tolist() == large
    assert [len(rows) for rows in ready.row_numbers] == [30, 30]


@pytest.mark.parametrize("column", ["age", "y"])
@pytest.mark.parametrize("cell", ["1e308", "1e39"])
def test_a_number_that_is_none_in_float32_is_named(linear, config, column, cell):
    frame = pd.read_csv(linear / "rows.csv").astype(object)
    frame.loc[3, column] = cell
    frame.to_csv(linear / "rows.csv", index=False)
    _refused(
        linear,
        config(linear),
        f"'{column}' holds 1e.{cell[2:]} in row 4 below the header, expec",
    )


def test_numbers_that_float32_takes_for_one(linear, config):
    frame = pd.read_csv(linear / "rows.csv")
    frame.assign(y=frame.y + 1e12).to_csv(linear / "rows.csv", index=False)
    _refused(linear, config(linear), "'y': all numbers are within .* 6.55e.04 apart")


@pytest.mark.parametrize("about", [{"local_epochs": 10**6}, {"local_steps": 10**9}])
def test_a_description_does_not_make_endless_work(linear, config, record, about):
    about = {"batch_size": 0, "learning_rate": 0.1, "momentum": 0.9} | about
    record(linear / "seen", pd.read_csv(linear / "rows.csv"), about=about)
    _refused(linear, config(linear), "seen.json a message is 10.* --most_steps=10")
    told = config(linear, attacks=("model",))
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    effort.check(ready, attacking.chosen(("model",)), told.audit)


def test_the_users_own_code_that_stops_is_one_line(
    linear, config, monkeypatch, tmp_path
):
    (tmp_path / "stops.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "torn.py").write_text("def (\n")
    (tmp_path / "late.py").write_text("def made():\n    return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    for model, said in {
        "stops:made": r"--model: .* SystemExit: 0 \(stops.py, line 2\)",
        "torn:made": "--model: torn:made cannot be imported: SyntaxError",
        "late:made": r"--model: .*ZeroDivisionError: .* \(late.py, line 2\)",
        "..:made": "--model: .*expected the full name of a module",
    }.items():
        _refused(linear, config(linear, model=model), said)


def test_values_that_fit_into_no_memory_are_refused(linear, config, monkeypatch):
    frame = pd.read_csv(linear / "rows.csv")
    towns = frame.assign(married=[f"t{number % 30}" for number in range(len(frame))])
    towns.to_csv(linear / "rows.csv", index=False)
    told = config(linear, categorical=("married",), attacks=("model",))
    read = inputs.read(told.files, told.rows)
    sent = {"out": {"kernel": np.zeros((12, 32, 1)), "bias": np.zeros((12, 1))}}
    gone = {"out": {k: np.ones((12, 2, *v.shape[1:])) for k, v in sent["out"].items()}}
    gone["out"]["kernel"][:, 1] = 2
    seen = read.recording.seen._replace(params=sent, delta=gone)
    read = read._replace(recording=read.recording._replace(seen=seen))
    ready, chosen = case.prepare(told, read), attacking.chosen(("model",))
    monkeypatch.setattr(memory, "available", lambda: 1e5)
    with pytest.raises(ConfigError, match="30 values tried on each of 30 rows need"):
        effort.check(ready, chosen, told.audit)
    monkeypatch.setattr(memory, "available", lambda: 1e9)
    effort.check(ready, chosen, told.audit)


def test_more_room_than_there_is_is_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e9)
    padding.check(400, 2_000, 20)
    with pytest.raises(ConfigError, match="400 clients, .* 20000 rows .* 5.1 GB"):
        padding.check(400, 20_000, 20)
