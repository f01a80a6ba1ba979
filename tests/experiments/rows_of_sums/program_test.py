"""The program of rows behind sums: its wall, its refusals, and a whole run."""

import pytest

from experiments.rows_of_sums import federation
from experiments.rows_of_sums.program import PROGRAM
from experiments.rows_of_sums.settings import RunConfig
from fljax import data, results
from fljax.driver.config import ConfigError
from tests import truth


def test_what_attacks_sums_gets_sums_and_no_row():
    run = RunConfig(clients=2, rows=4, batch_size=2, num_rounds=2, hidden=4)
    owned = federation.draw(data.load_images("digits"), run, 0)
    seen = federation.rounds(owned, run, "shuffled", 0, 0)
    wanted = {"rows": owned.x, "labels": owned.y}
    assert len(seen) == 2 and seen[0].update.shape == (65, 4)
    assert not truth.leaks(seen, wanted) and truth.leaks(owned, wanted)


def test_rows_that_a_span_cannot_hold_are_refused(parsed, tmp_path):
    folder, said = tmp_path / "out", "--rows: expected fewer rows of all clients than"
    with pytest.raises(ConfigError, match=f"{said} their 64 inputs"):
        PROGRAM.run(parsed(PROGRAM, f"--run_dir={folder}", "--rows=16"))
    assert not (folder / "rows.jsonl").exists()


@pytest.mark.slow
def test_shuffled_rows_are_found_and_some_of_those_that_stay_together(parsed, tmp_path):
    told = f"--run_dir={tmp_path / 'out'}", "--trainings=2", "--seeds=0"
    PROGRAM.run(parsed(PROGRAM, *told))
    found = {
        (row.setting, row.attack, row.metric): row.value
        for row in results.read_rows(tmp_path / "out" / "rows.jsonl")
    }
    common = "common_to_rounds"
    assert found["shuffled_2", common, "rows_found_percent"] > 95
    assert found["shuffled_2", common, "pairs_found_percent"] > 95
    alone = found["fixed_2", "exclusive_neurons", "rows_found_percent"]
    assert found["fixed_2", common, "rows_found_percent"] > alone
    assert not any(v for (*_, metric), v in found.items() if "wrong" in metric)
    floor = {m: v for (s, a, m), v in found.items() if a == "nothing_found"}
    assert floor.pop("v_measure_percent") == pytest.approx(52.8, abs=0.1)
    assert floor and not any(floor.values())
