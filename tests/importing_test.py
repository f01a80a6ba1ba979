"""What an import does: little, and nothing to devices, network or disk."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]

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
    paths = [
        path.relative_to(ROOT).with_suffix("")
        for folder in ("fljax", "experiments")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not left_out & set(path.parts) and path.stem != "__init__"
    ]
    names = [".".join(path.parts) for path in paths]
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
