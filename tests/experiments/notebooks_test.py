"""Every cell of every notebook runs, with small numbers in place of its own."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_NOTEBOOKS = sorted((_ROOT / "experiments/notebooks").glob("*.ipynb"))
_MOST_CELLS, _MOST_LINES, _SECONDS = 12, 40, 300
# What someone writes who adds something, the cell that installs apart.
_OF_USERS = ("new_attack", "new_defense")
_NEEDED = {"epsilon_audit": ("torch", "opacus")}  # of the extra `bench`
# What takes the place of a notebook's parameters.
_SMALL = {
    "attribute_inference": """
SEEDS = "0,1"
MORE = (
    "--num_rounds=4", "--trajectory_iterations=4", "--trajectory_path_steps=2",
)
""",
    "audit": 'NUM_ROUNDS, OPTIONS = 20, {"attacks": ("model", "linear_inversion")}\n',
    "epsilon_audit": "DRAWS = 600\n",
    "gradient_leakage": """
MORE = (
    "--clients=2", "--images=1", "--iterations=2", "--types=2",
    "--defense=none; fed_cdp(clip=4, sigma=6)",
)
""",
    "new_attack": 'SEEDS, MORE = "0,1", ("--num_rounds=4",)\n',
    "new_defense": """
MORE = (
    "--seeds=0",
    "--num_rounds=4", "--attack_grad_rounds=1", "--attack_grad_iterations=2",
    "--attack_grad_learning_rates=100", "--active_rounds=2", "--active_report=2",
    "--active_trials=2", "--active_grad_rounds=1", "--oracle_trials=2",
    "--oracle_epochs=2", "--trajectory_iterations=4", "--trajectory_path_steps=2",
)
""",
}
# What notebooks show pictures with is a part of every notebook, but not of the tests.
_KERNEL = """
import importlib.util, pathlib, sys, types

if importlib.util.find_spec("IPython") is None:
    shown = types.ModuleType("IPython.display")
    shown.SVG, shown.display = (lambda path: pathlib.Path(path).read_text()), print
    sys.modules["IPython.display"] = shown
    sys.modules["IPython"] = types.ModuleType("IPython")
"""


# Put behind it: what its numbers must show.
_SHOWN = {
    "epsilon_audit": """
assert not sound.crossed and broken.audited.epsilon > sound.audited.epsilon
""",
    "new_attack": """
assert {"majority", "imputation", "model_strangers", "fell_most"} <= set(scores.attack)
""",
    "audit": """
table = findings.table.set_index("attack")
assert table.value["linear_inversion"] > table.baseline["linear_inversion"] + 10, table
""",
    "new_defense": """
attacked = {"model", "grad", "model_oracle", "linear_inversion", "trajectory"}
assert attacked <= set(rows[rows.defense.str.startswith("mine:quantised")].attack)
assert {"passive", "active_2"} <= set(rows.setting)
""",
    "gradient_leakage": """
assert set(whole.metric) == {"reconstruction_distance", "ssim", "attack_success"}
""",
}


def _cells(path):
    return json.loads(path.read_text())["cells"]


def _script(path):
    """Its code, with the small parameters behind its own."""
    parts = [_KERNEL]
    for cell in _cells(path):
        if cell["cell_type"] == "code":
            parts.append(_plain("".join(cell["source"])))
            if "parameters" in cell["metadata"].get("tags", ()):
                parts.append(_SMALL[path.stem])
    return "\n\n".join([*parts, _SHOWN.get(path.stem, "")])


def _plain(source):
    """A cell as Python alone understands it."""
    first, _, rest = source.partition("\n")
    if not first.startswith("%%writefile "):
        return source
    return f"pathlib.Path({first.split()[1]!r}).write_text({rest!r})"


def test_each_notebook_is_run():
    assert {path.stem for path in _NOTEBOOKS} == set(_SMALL)


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_thin_and_hold_no_outputs(path):
    cells = _cells(path)
    assert len(cells) <= _MOST_CELLS
    assert cells[0]["cell_type"] == "markdown"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert "pip" in "".join(code[0]["source"])
    assert all(not c["outputs"] and c["execution_count"] is None for c in code)
    assert sum("parameters" in c["metadata"].get("tags", ()) for c in code) == 1


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_user_writes_is_short(path):
    lines = [
        line
        for cell in _cells(path)
        if cell["cell_type"] == "code" and "pip" not in "".join(cell["source"])
        for line in cell["source"]
        if line.strip() and not line.lstrip().startswith("#")
    ]
    assert len(lines) <= _MOST_LINES or path.stem not in _OF_USERS


@pytest.mark.slow
@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path, tmp_path):
    for needed in _NEEDED.get(path.stem, ()):
        pytest.importorskip(needed)
    (tmp_path / "experiments").symlink_to(_ROOT / "experiments")
    done = subprocess.run(
        (sys.executable, "-c", _script(path)),
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(_ROOT), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr
