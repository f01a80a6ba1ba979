"""States on disk: what comes back, and what is no state."""

import pathlib
import resource
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.driver.checkpoints import Checkpoints

_NOISE = np.random.default_rng(0).random((50, 200), np.float32)


def _state(number=0.0):
    return {
        "params": (_NOISE + number, np.zeros((0, 4), np.float32)),
        "round": jnp.int32(7),
        "mask": np.arange(5) > 2,
        "loss": np.float64(number / 3),
    }


def _saved(folder, *steps):
    store = Checkpoints(folder)
    for step in steps:
        store.save(step, _state(float(step)))
    return store


def _files(folder, step):
    """Those that hold arrays, the largest last."""
    found = (path for path in pathlib.Path(folder, str(step)).rglob("*"))
    return sorted((p for p in found if p.is_file()), key=lambda p: p.stat().st_size)


def test_the_last_state_comes_back_to_the_bit(tmp_path):
    _saved(tmp_path / "a", 2, 5)
    store = Checkpoints(tmp_path / "a")
    step, found = store.latest(_state())
    assert step == 5
    wanted = jax.tree.map(np.asarray, _state(5.0))
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    assert all(
        a.dtype == b.dtype
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    )


def test_nothing_is_found_where_nothing_was_saved(tmp_path):
    assert Checkpoints(tmp_path / "new").latest(_state()) is None


def test_two_states_are_kept(tmp_path):
    _saved(tmp_path, 1, 2, 3)
    assert {p.name for p in tmp_path.iterdir()} == {"2", "3"}


def test_going_back_replaces_what_was_later(tmp_path):
    store = _saved(tmp_path, 4, 8)
    store.save(6, _state(6.0))
    assert store.latest(_state())[0] == 6
    store.save(6, _state(7.0))
    assert store.latest(_state())[1]["loss"] == 7 / 3


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "removed"])
def test_a_damaged_state_is_none_and_the_one_before_counts(tmp_path, damage, capfd):
    _saved(tmp_path, 3, 9)
    capfd.readouterr()
    path = _files(tmp_path, 9)[-1]
    content = path.read_bytes()
    middle = len(content) // 2
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(
            {
                "cut": content[:middle],
                "changed": content[:middle]
                + bytes([content[middle] ^ 255])
                + content[middle + 1 :],
                "emptied": b"",
            }[damage]
        )
    step, found = Checkpoints(tmp_path).latest(_state())
    assert step == 3
    assert found["loss"] == 1
    assert capfd.readouterr().err == ""


def test_what_a_dying_process_leaves_is_cleared(tmp_path):
    _saved(tmp_path, 3)
    torn = tmp_path / "9.orbax-checkpoint-tmp"
    torn.mkdir()
    (tmp_path / "12").mkdir()  # a folder without anything in it
    assert Checkpoints(tmp_path).latest(_state())[0] == 3
    assert not torn.exists()


def test_what_is_no_checkpoint_is_left_alone(tmp_path):
    _saved(tmp_path, 3)
    stray = tmp_path / ".nfs0001"
    stray.touch()
    store = Checkpoints(tmp_path)
    (tmp_path / "9.orbax-checkpoint-tmp").mkdir()  # of another process
    assert store.latest(_state())[0] == 3
    store.save(4, _state())
    assert stray.exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_disk_that_is_full_leaves_the_state_before(tmp_path):
    store = _saved(tmp_path, 3)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError):
            store.save(9, _state(9.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert store.latest(_state())[0] == 3
    store.save(9, _state(9.0))
    assert {path.name for path in tmp_path.iterdir()} == {"3", "9"}


def test_a_state_for_which_there_is_no_room_is_not_begun(tmp_path, monkeypatch, capfd):
    store = _saved(tmp_path, 3)
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match="No space left on device"):
        store.save(9, _state(9.0))
    assert {path.name for path in tmp_path.iterdir()} == {"3"}
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "other",
    [
        {"params": jnp.zeros(3)},
        _state() | {"loss": np.zeros(2)},
        _state() | {"loss": np.float32(0)},
        _state() | {"more": np.zeros(1)},
    ],
    ids=["fewer", "shape", "dtype", "more"],
)
def test_a_state_of_another_form_is_none(tmp_path, other):
    store = _saved(tmp_path, 3)
    assert store.latest(other) is None
