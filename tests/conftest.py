"""Every test runs on two CPU devices and under JAX's stricter checks.

Most of their time is compiling. So machine code is made without optimisations, and the
workers of a run share what one of them compiled, in a folder that goes with the run;
with JAX_COMPILATION_CACHE_DIR the folder is the user's, and stays.

A test of the fast tier that takes more than 5 s is named at the end, unless the mark
`long` says why it has to.
"""

import collections
import gc
import os
import pathlib
import tempfile

# Before NumPy and SciPy are imported: threads of their linear algebra wait for each
# other where several workers have fewer cores, and take ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import jaxlib.version
import pytest
from absl import flags

from fljax import accelerators, parallel, precision
from fljax.results import Row

_DEVICES = int(os.environ.get("FLJAX_TEST_DEVICES", "2"))
_BUDGET = 5.0  # seconds of a test and its fixtures

# Generating code in one piece takes three quarters of what it takes in many, and in the
# older way, which jaxlib had up to 0.10, half as long.
_QUICK = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
if jaxlib.version.__version_info__ < (0, 11):
    _QUICK += " --xla_cpu_use_fusion_emitters=false"
if _QUICK not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_QUICK}".strip()
jax.config.update("jax_num_cpu_devices", _DEVICES)
parallel.use_cpu_cores()
precision.use_full()
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)

if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _COMPILED = tempfile.TemporaryDirectory(prefix="fljax-tests-")
    # Workers and programs that tests start read the environment.
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _COMPILED.name
    jax.config.update("jax_compilation_cache_dir", _COMPILED.name)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)

# Begun last, one of them would keep a worker while others idle.
_LONG = (
    "tests/wheel_test.py",
    "aia/kill_test.py",
    "experiments/notebooks_test.py",
    "benchmarks/clipping_test.py",
    "benchmarks/scaling_test.py",
    "aia/trajectory_test.py",
    "aia/program_test.py",
    "attacks/trajectory_test.py",
    "defenses/contracts_test.py",
    "defenses/attacks_contract_test.py",
    "gradient_leakage/program_test.py",
    "label_distribution/program_test.py",
    "privacy/self_test_test.py",
)


def pytest_collection_modifyitems(items):
    """Long files first, the order of all others as it was."""
    # What is there now stays, and traces are many small objects that soon go.
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    items.sort(key=lambda item: not item.path.as_posix().endswith(_LONG))


def pytest_terminal_summary(terminalreporter):
    """Names the tests that took too long without a reason."""
    taken, excused = collections.Counter(), {"slow", "long"}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and not excused & {
                *report.keywords
            }:
                taken[report.nodeid] += report.duration
    over = [(name, spent) for name, spent in taken.most_common() if spent > _BUDGET]
    if over:
        terminalreporter.section(f"over {_BUDGET:g} s without a reason")
        for name, spent in over:
            terminalreporter.line(f"{spent:5.1f} s {name}")


@pytest.fixture
def shared_data() -> str:
    """Folder of the real data files, beside the repository; skips where absent."""
    folder = pathlib.Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real data files in ../shared/data")
    return str(folder)


@pytest.fixture(params=[False, True], ids=["rows added up", "product"])
def one_hot(request, monkeypatch):
    """Reads one-hot columns as on a CPU, and as on an accelerator."""
    monkeypatch.setattr(accelerators, "used", lambda: request.param)


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
    """Parses arguments as the flags of a program; returns its settings."""

    def parse(program, *arguments):
        values = flags.FlagValues()
        program.define(values)
        values(["program", *arguments])
        return program.read(values)

    return parse
