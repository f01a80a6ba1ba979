"""Copies notebooks of `experiments/notebooks` to `docs/notebooks`, where they are run.

The cell that clones and installs gives way to one that enters an empty folder with the
repository beside it; outputs of a notebook land there. Pages link to the originals, so
that links hold without the site, too; on the site they lead to the copies.
"""

import json
import pathlib
import typing

if typing.TYPE_CHECKING:
    from sphinx.application import Sphinx

NOTEBOOKS = ("audit", "new_attack", "new_defense")
# In place of a notebook's parameters, where its own would take minutes.
PARAMETERS = {
    "audit": """
NUM_ROUNDS, NUM_CLIENTS = 60, 3
BATCH_SIZE, LEARNING_RATE = 32, 0.05
OPTIONS = {"attacks": ("model", "linear_inversion", "trajectory")}
RUN_DIR = "runs/notebook.audit"
""",
    "new_attack": """
FLAGFILE = "experiments/flags/aia.diabetes.mlp.flags"
SEEDS = "0,1,2"
MORE = ()  # any flag of `python -m experiments.aia --help`
RUN_DIR = "runs/notebook.new_attack"
""",
    "new_defense": """
FLAGS = ("--flagfile=experiments/flags/aia.diabetes.mlp.flags", "--seeds=0")
MORE = ("--attack_kinds=model,linear_inversion",)
RUN_DIR = "runs/notebook.new_defense"
""",
}
_ENTER = """
import os
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(os.environ["FLJAX_ROOT"])
os.chdir(tempfile.mkdtemp())
pathlib.Path("experiments").symlink_to(root / "experiments")
for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):  # a page is no terminal
    os.environ.pop(name, None)
"""


def adapted(notebook: dict, name: str) -> dict:
    """A notebook as the site runs it."""
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tags = cell["metadata"].get("tags", [])
        if "parameters" in tags and name in PARAMETERS:
            cell["source"] = PARAMETERS[name].strip()
        elif '"pip"' in "".join(cell["source"]):
            cell["source"] = _ENTER.strip()
            cell["metadata"]["tags"] = [*tags, "remove-cell"]
    return notebook


def _write(app: "Sphinx") -> None:
    folder = app.srcdir / "notebooks"
    folder.mkdir(exist_ok=True)
    source = pathlib.Path(app.srcdir).parent / "experiments/notebooks"
    for name in NOTEBOOKS:
        notebook = json.loads((source / f"{name}.ipynb").read_text(encoding="utf-8"))
        text = json.dumps(adapted(notebook, name), indent=1) + "\n"
        path = folder / f"{name}.ipynb"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _relink(app: "Sphinx", name: str, source: list[str]) -> None:
    del app, name
    source[0] = source[0].replace("](../experiments/notebooks/", "](notebooks/")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Copies are there before Sphinx looks for them."""
    app.connect("builder-inited", _write)
    app.connect("source-read", _relink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
