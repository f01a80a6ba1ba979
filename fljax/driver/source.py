"""Which code computes: a hash of the sources that a run may depend on."""

import functools
import hashlib
import importlib.util
import pathlib

import fljax


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


def identity(program: str) -> dict[str, str]:
    """Hashes of the package and of the one that a program belongs to.

    Args:
      program: name of its module, e.g. `experiments.aia.program`.
    """
    packages = dict.fromkeys((fljax.__name__, program.partition(".")[0]))
    return {package: sha256(package) for package in packages}
