"""Who may import whom, and what no module may do."""

import ast
import functools
import graphlib
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# The closed core, from the nouns up: a module imports only from lower levels.
LEVELS = {
    "accelerators": 0,
    "attack_names": 0,
    "cgroups": 0,
    "files": 0,
    "imports": 0,
    "precision": 0,
    "printable": 0,
    "types": 0,
    "compiled": 1,
    "cores": 1,
    "draws": 1,
    "losses": 1,
    "memory": 1,
    "models": 1,
    "packing": 1,
    "participation": 1,
    "partition": 1,
    "tree": 1,
    "in_place": 2,
    "per_example": 2,
    "schedule": 2,
    "batches": 3,
    "defenses": 3,
    "dropout": 3,
    "local": 3,
    "parallel": 3,
    "stacking": 3,
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
    assert list(graphlib.TopologicalSorter(_graph(EVERYTHING, ROOT)).static_order())


def test_a_circle_by_way_of_a_package_would_be_noticed(tmp_path):
    for name, text in {
        "fljax/a/__init__.py": "from fljax.a import x",
        "fljax/a/x.py": "from fljax import b",
        "fljax/b/__init__.py": "from fljax.b import y",
        "fljax/b/y.py": "import fljax.a",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    graph = _graph(sorted(tmp_path.rglob("*.py")), tmp_path)
    with pytest.raises(graphlib.CycleError):
        list(graphlib.TopologicalSorter(graph).static_order())


def _graph(paths, root):
    """Dotted names of the modules that each of the files imports."""
    names = {_dotted(path, root): path for path in paths}

    def module(name):
        while name and name not in names:
            name = name.rpartition(".")[0]
        return name

    return {
        name: {module(each) for each in _imports(path)} - {name, "", "fljax"}
        for name, path in names.items()
    }


def _dotted(path, root=ROOT):
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(
        ".__init__"
    )


def test_the_attacks_never_see_the_truth_or_the_score():
    for path in _modules("fljax/attacks"):
        known = {_unit(name) for name in _imports(path)}
        assert not known & LEAVES


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


def test_the_map_has_every_module():
    # As a file or a package of its own, not within another name.
    said = (ROOT / "docs" / "architecture.md").read_text()
    the_map = said[said.index("## The map") : said.index("## Principles")]
    names = [*LEVELS, *sorted(LEAVES)]
    missing = [n for n in names if not re.search(rf"[`/]{n}(\.py|/)?`", the_map)]
    assert missing == []


def test_the_checks_see_the_whole_library():
    names = {path.relative_to(ROOT).as_posix() for path in LIBRARY}
    assert {"fljax/rounds.py", "fljax/attacks/attribute/gradient.py"} <= names
    assert "fljax.schedule.Schedule" in _imports(ROOT / "fljax" / "rounds.py")


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
