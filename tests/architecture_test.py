"""Who may import whom, and what no module may do."""

import ast
import functools
import graphlib
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# The closed core, from the nouns up: a module imports only from lower levels.
LEVELS = {
    "accelerators": 0,
    "attack_names": 0,
    "compiled": 1,
    "types": 0,
    "files": 0,
    "imports": 0,
    "precision": 0,
    "printable": 0,
    "packing": 1,
    "tree": 1,
    "losses": 1,
    "models": 1,
    "partition": 1,
    "participation": 1,
    "schedule": 2,
    "batches": 3,
    "in_place": 2,
    "per_example": 2,
    "draws": 1,
    "defenses": 3,
    "cores": 0,
    "memory": 0,
    "stacking": 3,
    "parallel": 3,
    "local": 3,
    "rounds": 4,
    "federation": 5,
    "transcript": 5,
    "attacks": 6,
}
# Beside the core, which never imports them.
LEAVES = {
    "audit",
    "auditing",
    "certainty",
    "data",
    "driver",
    "fit",
    "image_metrics",
    "strangers",
    "imputation",
    "metrics",
    "privacy",
    "results",
    "shrinkage",
    "verdicts",
}
# What programs need before and after their own work: flags, folders, screens.
COMMAND_LINES = {"auditing", "driver"}


def _modules(folder):
    return sorted((ROOT / folder).rglob("*.py"))


LIBRARY = _modules("fljax")
EVERYTHING = LIBRARY + _modules("experiments")
WRITTEN = EVERYTHING + _modules("tests")


@functools.cache
def _nodes(path):
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def _imports(path):
    """Dotted names of all that a file imports, wherever in the file."""
    names = []
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def _unit(name):
    """`fljax.attacks.gradient.x` -> `attacks`; None for `fljax` and other packages."""
    package, _, rest = name.partition(".")
    return rest.split(".")[0].removesuffix(".py") if package == "fljax" else None


def _unit_of_file(path):
    return path.relative_to(ROOT / "fljax").parts[0].removesuffix(".py")


def _no_faults(paths, faults):
    """Every line that `faults` has to say of any of the files is an error."""
    assert [f"{p.relative_to(ROOT)}: {said}" for p in paths for said in faults(p)] == []


def test_imports_go_one_way():
    def faults(path):
        here = _unit_of_file(path)
        if here == "__init__":
            return  # see _FACE
        if (here in LEVELS) == (here in LEAVES):
            yield f"give {here} its place above"
        if here not in LEVELS:
            return
        for name in _imports(path):
            there = _unit(name)
            if there not in (None, here) and LEVELS.get(there, 99) >= LEVELS[here]:
                yield f"{here} imports {there}"

    _no_faults(LIBRARY, faults)


def test_no_module_needs_itself():
    """Not by way of others either, wherever in a file they are imported."""
    names = {_dotted(path): path for path in EVERYTHING}

    def module(name):
        while name and name not in names:
            name = name.rpartition(".")[0]
        return name

    graph = {
        name: {module(each) for each in _imports(path)} - {name, "", "fljax"}
        for name, path in names.items()
    }
    assert list(graphlib.TopologicalSorter(graph).static_order())


def _dotted(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
        ".__init__"
    )


def test_the_attacks_never_see_the_truth_or_the_score():
    for path in _modules("fljax/attacks"):
        known = {_unit(name) for name in _imports(path)}
        assert not known & {"certainty", "metrics", "data"}


def test_the_library_knows_neither_experiments_nor_flags():
    def faults(path):
        packages = {name.split(".")[0] for name in _imports(path)}
        flags = set() if _unit_of_file(path) in COMMAND_LINES else {"absl"}
        yield from packages & ({"experiments", "tests"} | flags)

    _no_faults(LIBRARY, faults)


def test_the_library_neither_prints_nor_unpickles_nor_seeds_globally():
    unpicklers = {"pickle", "dill", "cloudpickle", "joblib", "marshal"}
    forbidden = {
        "eval", "exec", "np.random.seed", "numpy.random.seed", "random.seed",
    }  # fmt: skip

    def faults(path):
        yield from {name.split(".")[0] for name in _imports(path)} & unpicklers
        prints = set() if _unit_of_file(path) in COMMAND_LINES else {"print"}
        for node in _nodes(path):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in forbidden | prints:
                    yield f"line {node.lineno}: {called}"
            allows = isinstance(node, ast.keyword) and node.arg == "allow_pickle"
            if allows and ast.unparse(node.value) != "False":
                yield f"line {node.value.lineno}: allow_pickle"

    _no_faults(LIBRARY, faults)


def test_no_module_is_longer_than_300_lines():
    def faults(path):
        if (lines := len(path.read_text().splitlines())) > 300:
            yield f"{lines} lines"

    _no_faults(WRITTEN, faults)


def test_the_checks_see_the_whole_library():
    names = {path.relative_to(ROOT).as_posix() for path in LIBRARY}
    assert {"fljax/rounds.py", "fljax/attacks/attribute/gradient.py"} <= names
    assert "fljax.schedule.Schedule" in _imports(ROOT / "fljax" / "rounds.py")


_PROBE = """
import importlib, socket, sys

def refuse(*args, **kwargs):
    raise RuntimeError("a connection was opened on import")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.create_connection = socket.getaddrinfo = refuse
root, *names = sys.argv[1:]
sys.path.insert(0, root)
for name in names:
    importlib.import_module(name)
import jax._src.xla_bridge as bridge
assert not bridge._backends, "a device was touched on import"
"""


def _import_afresh(names, folder):
    return subprocess.run(
        [sys.executable, "-B", "-c", _PROBE, str(ROOT), *names],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def _dotted(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


_FACE = """
import sys, fljax
heavy = {'jax', 'numpy', 'pandas', 'absl', 'fljax.data'} & set(sys.modules)
assert not heavy, heavy
assert fljax.__all__ == %s
from fljax import audit
assert callable(audit) and callable(fljax.audit)
assert all(getattr(fljax, name) for name in fljax.__all__)
import jax._src.xla_bridge as bridge
assert not bridge._backends, 'a device was touched by the public face'
"""


def test_the_public_face_is_cheap_and_no_import_touches_device_network_or_disk(
    tmp_path,
):
    face = ["attacks", "audit", "data", "defenses", "federation", "privacy", "train"]
    (tmp_path / "face.py").write_text(_FACE % [*face, "transcript"])
    # Benchmarks are left out: they measure other frameworks, too.
    # fljax/audit.py is for `python -m` only.
    left_out = {"benchmarks", "audit.py"}
    paths = [p for p in EVERYTHING if not left_out & set(p.parts)]
    names = [_dotted(path) for path in paths if path.stem != "__init__"]
    found = _import_afresh(["face", *names], tmp_path)
    assert found.returncode == 0, found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["face.py"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import jax.numpy as jnp; jnp.zeros(1)", "a device was touched"),
        ("import socket; socket.create_connection(('localhost', 9))", "a connection"),
    ],
    ids=["device", "network"],
)
def test_the_probe_would_notice(source, message, tmp_path):
    (tmp_path / "bad.py").write_text(source)
    found = _import_afresh(["bad"], tmp_path)
    assert found.returncode != 0
    assert message in found.stderr


def test_no_tracked_text_names_a_folder_of_one_machine():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    machine = re.compile(
        rb"(?<![\w./:~-])/(?:home|root|work|tmp|mnt|Users|private)/\w|\b[A-Z]:\\Users"
    )
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b""
        if b"\0" in content[:8192]:
            continue
        for number, line in enumerate(content.splitlines(), 1):
            if machine.search(line):
                found.append(f"{name}:{number}")
    assert not found
