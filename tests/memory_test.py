"""How much memory is left."""

import pytest

from fljax import memory


@pytest.mark.parametrize(
    ("limit", "expected"), [("max\n", None), ("3000\n", 2400.0), (None, None)]
)
def test_a_container_has_what_its_limit_leaves(tmp_path, monkeypatch, limit, expected):
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text("1000\n")
        # What was read of files is given up when memory is wanted.
        (tmp_path / "memory.stat").write_text("anon 600\ninactive_file 400\n")
    free = memory.available()
    assert free == expected if expected else free > 1e8
