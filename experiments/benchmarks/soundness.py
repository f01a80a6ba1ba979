"""How often an audit proves more than is accounted, of mechanisms that keep their word.

    python -m experiments.benchmarks.soundness --audits=500

Each audit trains a federation of its own noise: two clients, two rounds of one step on
all rows, under DP-SGD (records) or Fed-SDP (clients), whose noise is as large as an
epsilon asks for. Bounds hold with 95 % confidence each, so that of each observer at most
one audit in twenty may be above what is accounted.
"""

import dataclasses
import time
from collections.abc import Iterator

import numpy as np
import optax

from experiments.benchmarks import harness
from fljax import losses, models, privacy
from fljax.defenses import dp_sgd, fed_sdp
from fljax.driver.option import option, several
from fljax.federation import FedAvg, Federation, Tables
from fljax.privacy.audits import OBSERVERS, Audit, Canary
from fljax.types import Features, Rows

_ALLOWED, _DELTA = 1 / 20, 0.1
_CLIENTS, _ROWS, _COLUMNS, _ROUNDS = 2, 4, 3, 2
_VALUES = np.array([[-3.0], [3.0]], np.float32)
CANARIES = {
    "gradient": Canary(),
    "gradient:replace": Canary(neighbours="replace"),
    "mislabelled": Canary("mislabelled"),
    "row:sensitive": Canary("row", "sensitive", values=_VALUES),
    "client": Canary("client"),
    "client:replace": Canary("client", "replace"),
}
_SHOWN = {
    "canary": ("canary", ""), "epsilon": ("budget", "g"),
    "accounted": ("accounted", ".2f"), "observer": ("observer", ""),
    "audits": ("audits", "d"), "above": ("above", "d"),
    "percent": ("% of audits", ".1f"), "median": ("median audited", ".2f"),
    "seconds": ("s an audit", ".3f"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(harness.SmallFlags):
    """No prefix."""

    audits: int = option(500, "of each canary and epsilon", min=1)
    trainings: int = option(250, "of each audit", min=100)
    epsilons: tuple[float, ...] = several((1.0, 2.0, 4.0), "budgets", above=0)
    canaries: tuple[str, ...] = several(tuple(CANARIES), "what is planted")


def benchmark(flags: Flags) -> tuple[list[harness.Row], list[harness.Target]]:
    """Audits above the account, beside one in twenty with three standard errors."""
    audits = 2 if flags.smoke else flags.audits
    limit = _ALLOWED + 3 * float(np.sqrt(_ALLOWED * (1 - _ALLOWED) / audits))
    rows, targets = [], []
    for name in flags.canaries:
        federation = planted(CANARIES[name], flags.seed)
        for epsilon in flags.epsilons:
            begin = time.perf_counter()
            how = audits, flags.trainings, flags.seed
            found = [*proved(federation, epsilon, *how)]
            seconds = (time.perf_counter() - begin) / audits
            for observer in OBSERVERS:
                low = np.array([each.audited[observer].epsilon for each in found])
                above = int((low > found[0].accounted).sum())
                rows.append(
                    {
                        "benchmark": "soundness", "canary": name, "epsilon": epsilon,
                        "accounted": found[0].accounted, "observer": observer,
                        "audits": audits, "trainings": flags.trainings, "above": above,
                        "percent": 100 * above / audits,
                        "median": float(np.median(low)), "seconds": seconds,
                    }
                )  # fmt: skip
                title = f"{name}, epsilon {epsilon:g}, {observer}"
                share = above / audits
                targets.append(harness.Target(title, share, limit, at_least=False))
    return rows, targets


def proved(
    federation: Federation, epsilon: float, audits: int, trainings: int, seed: int
) -> Iterator[Audit]:
    """Audits of one mechanism, each of trainings of its own."""
    noise = privacy.noise_multiplier_for(
        epsilon, _DELTA, 1.0, _ROUNDS, accountant="pld"
    )
    for number in range(audits):
        yield privacy.audit(
            federation,
            trainings=trainings,
            delta=_DELTA,
            numbers=np.float32(noise),
            seed=seed + number,
        )


def planted(canary: Canary, seed: int) -> Federation:
    """The federation of all audits of a canary; a multiplier is its trainings' number."""
    model = models.linear(_COLUMNS)

    def method(loss_fn: losses.LossFn) -> FedAvg:
        def record(noise):
            return dp_sgd.dp_sgd(
                loss_fn, clip=1.0, noise_multiplier=noise, sampling_rate=1.0,
                batch_size=float(_ROWS),
            )  # fmt: skip

        def client(noise):
            return fed_sdp.fed_sdp(
                clip=1.0, noise_scale=noise * 2**0.5, sampling_rate=1.0,
                num_layers=2, sampling="all",
            )  # fmt: skip

        return FedAvg(
            model=model,
            loss_fn=loss_fn,
            optimiser=lambda numbers: optax.sgd(0.1),
            defense=client if canary.kind == "client" else record,
        )

    rng = np.random.default_rng(seed)
    total = _CLIENTS * _ROWS
    x = rng.normal(size=(total, _COLUMNS)).astype(np.float32)
    y = rng.normal(size=total).astype(np.float32)
    tables = Tables.of(
        Rows(Features(x, np.zeros((total, 0), np.int32)), y),
        np.split(np.arange(total), _CLIENTS),
        num_rounds=_ROUNDS, batch_size=_ROWS, poisson=True,
    )  # fmt: skip
    loss_fn = losses.example_loss(model.apply, losses.squared)
    return privacy.plant(method, loss_fn, tables, canary, seed=seed)


if __name__ == "__main__":
    harness.main(benchmark, Flags, _SHOWN)
