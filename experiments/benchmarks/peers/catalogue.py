"""Which defenses of which package are compared, each as its documentation uses it."""

import importlib
import importlib.metadata
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from experiments.benchmarks.peers.training import Setting, Shipped


class Entry(NamedTuple):
    """A defense.

    Attributes:
      package: that ships it, as it is installed.
      defense: name with its numbers; `median` or a percentile is that of what it clips.
      where: `module.function` of this folder.
      options: of that function.
    """

    package: str
    defense: str
    where: str
    options: dict[str, Any]

    def make(self, setting: Setting) -> Shipped:
        """For one training; imports the package."""
        name, function = self.where.split(".")
        module = importlib.import_module(f"{__package__}.{name}")
        return getattr(module, function)(setting, **self.options)

    @property
    def version(self) -> str | None:
        """Of the package; None where it is not installed."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None


def _nvflare(defense: str, function: str, **options) -> Entry:
    return Entry("nvflare", defense, f"nvflare_filters.{function}", options)


def _flower(defense: str, function: str, **options) -> Entry:
    return Entry("flwr", defense, f"flower_mods.{function}", options)


def _ours(text: str) -> Entry:
    shown = text.replace("{gradient:.8g}", "median")
    return Entry("fljax", shown, "gradients.ours", {"text": text})


def _dp(package: str, defense: str, where: str, epsilon: float) -> Entry:
    shown = f"{defense}, epsilon {epsilon:g}"
    return Entry(package, shown, where, {"epsilon": epsilon})


_JAX_PRIVACY = "jax-privacy", "clipped_grad + noise", "gradients.jax_privacy_dp"
_OPACUS = "opacus", "PrivacyEngine", "opacus_clients.dp_sgd"
ENTRIES = (
    _ours("none"),
    _nvflare("PercentilePrivacy(10, 0.01)", "percentile"),
    _nvflare("PercentilePrivacy(10, 99th percentile)", "percentile", at=99),
    _nvflare("PercentilePrivacy(10, 90th percentile)", "percentile", at=90),
    _nvflare("SVTPrivacy()", "sparse_vector"),
    _nvflare("ExcludeVars(first layer)", "exclude"),
    _flower("fixedclipping_mod, median", "fixed"),
    _flower("adaptiveclipping_mod", "adaptive"),
    _flower("LocalDpMod, epsilon 10", "local_dp", epsilon=10.0),
    _flower("LocalDpMod, epsilon 1", "local_dp", epsilon=1.0),
    _dp(*_OPACUS, epsilon=8.0),
    _dp(*_OPACUS, epsilon=1.0),
    _dp("optax", "differentially_private_aggregate", "gradients.optax_dp", 8.0),
    _dp(*_JAX_PRIVACY, epsilon=8.0),
    _dp(*_JAX_PRIVACY, epsilon=1.0),
    _ours("dp_sgd(clip={gradient:.8g}, epsilon=8)"),
    _ours("dp_sgd(clip={gradient:.8g}, epsilon=1)"),
    _ours("median"),
    _ours("pruning(ratio=0.9)"),
)


def installed(packages: Sequence[str]) -> list[Entry]:
    """Those of these packages that are there; of all packages if none is named.

    A warning names each that is not.
    """
    chosen = [each for each in ENTRIES if not packages or each.package in packages]
    missing = dict.fromkeys(each.package for each in chosen if each.version is None)
    for package in missing:
        left_out = [each.defense for each in chosen if each.package == package]
        warnings.warn(
            f"{package} is not installed, left out: {'; '.join(left_out)} "
            "(pip install -e '.[peers]')",
            stacklevel=2,
        )
    return [each for each in chosen if each.package not in missing]
