"""Every test runs on 8 CPU devices and under JAX's stricter checks.

Most of their time is compiling, so machine code is made without optimisations.
"""

import os
import pathlib

import jax
import pytest
from absl import flags

from fljax import parallel
from fljax.driver import config
from fljax.results import Row

os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()
)
jax.config.update("jax_num_cpu_devices", 8)
parallel.use_cpu_cores()
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)

# Minutes for few tests: begun last, one of them would keep a worker while others idle.
_LONG = (
    "aia/kill_test.py",
    "aia/memory_test.py",
    "aia/processes_test.py",
    "aia/trajectory_test.py",
    "auditing/scoring_test.py",
    "benchmarks/clipping_test.py",
    "benchmarks/scaling_test.py",
    "experiments/notebooks_test.py",
    "label_distribution/program_test.py",
)


def pytest_collection_modifyitems(items):
    """Long files first, the order of all others as it was."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(_LONG))


@pytest.fixture
def shared_data() -> str:
    """Folder of the real data files, beside the repository; skips where absent."""
    folder = pathlib.Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real data files in ../shared/data")
    return str(folder)


@pytest.fixture(scope="session")
def row() -> Row:
    """A result, of which others are made by `_replace`."""
    return Row(
        experiment="aia",
        data="medical",
        model="linear",
        defense="none",
        attack="grad",
        setting="passive",
        point="",
        seed=0,
        client="all",
        metric="aia_accuracy_percent",
        value=80.0,
        n=100,
    )


@pytest.fixture(scope="session")
def parsed():
    """Parses arguments with the flags that `define` registers.

    Returns an object per dataclass, in the order in which they are registered.
    """

    def parse(define, *arguments):
        values, groups = flags.FlagValues(), []

        def register(cls, prefix=""):
            config.define(cls, prefix, flag_values=values)
            groups.append((cls, prefix))

        define(register)
        values(["program", *arguments])
        return [config.read(cls, prefix, flag_values=values) for cls, prefix in groups]

    return parse
