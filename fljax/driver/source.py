"""Which code computes: a hash of the sources that a run may depend on."""

import ast
import functools
import hashlib
import importlib.util
import json
import pathlib
import re
from typing import Any

import fljax

_NAMED = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]\w*")  # module:attribute


@functools.cache
def sha256(package: str) -> str:
    """Hash of the names and contents of all Python files of an importable package."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ValueError(f"expected an importable package, got {package!r}")
    folders = map(pathlib.Path, spec.submodule_search_locations or ())
    found = [(path, folder) for folder in folders for path in folder.rglob("*.py")]
    if not found and spec.origin is not None:  # a module
        found = [(pathlib.Path(spec.origin), pathlib.Path(spec.origin).parent)]
    total = hashlib.sha256()
    for path, folder in sorted(found):
        content = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def identity(program: str, settings: Any = None) -> dict[str, str]:
    """Hashes of the package, of the one that a program belongs to, and of users' code.

    Args:
      program: name of its module, e.g. `experiments.aia.program`.
      settings: what it was told, as JSON takes it. A text in it that names code as
        `package.module:attribute` (a model, a defense, an attack) adds the package, or
        the module and those beside it that it imports.
    """
    waiting = [fljax.__name__, program.partition(".")[0]]
    for module in _NAMED.findall(json.dumps(settings)):
        waiting.append(module.partition(".")[0])
    packages: dict[str, str] = {}
    while waiting:
        package = waiting.pop(0)
        if package not in packages and _origin(package) is not None:
            packages[package] = sha256(package)
            waiting += _beside(package)
    return packages


def _origin(package: str) -> pathlib.Path | None:
    """Where an importable package or module lies; None for what has no source."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    places = [] if spec is None else [*(spec.submodule_search_locations or ())]
    if spec is not None and not places and spec.has_location:
        assert spec.origin is not None
        places = [spec.origin]
    return pathlib.Path(places[0]) if places else None


def _beside(module: str) -> list[str]:
    """What a single file imports from its own folder."""
    path = _origin(module)
    if path is None or path.suffix != ".py":
        return []
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # said when it is imported
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    found = {name.partition(".")[0]: None for name in names}
    return [
        name
        for name in found
        if (other := _origin(name)) is not None and other.parent == path.parent
    ]
