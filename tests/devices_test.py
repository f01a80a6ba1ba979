"""What must hold on any number of devices, on more of them than tests usually have."""

import os
import pathlib
import subprocess
import sys

import pytest

_FILES = (
    "tests/parallel_test.py",
    "tests/invariants",
    "tests/attacks/label_distribution/shadow_clients_test.py",
)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [4, 8])
def test_on_so_many_devices(devices):
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_FILES),
        cwd=pathlib.Path(__file__).parents[1],
        env=os.environ | {"FLJAX_TEST_DEVICES": str(devices)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
