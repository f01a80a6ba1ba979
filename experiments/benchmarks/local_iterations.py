"""What defenses cost a client's local iteration (Table III of Wei et al., 2021).

    python -m experiments.benchmarks.local_iterations [--networks=mnist] [--json=FILE]

One round of a federation for each defense, one after another and again, on the networks
and batches of the paper and drawn rows; what is done once a round, as Fed-SDP does, is
spread over its iterations. The printed milliseconds are of the authors' machine: their
ratios stand beside ours.
"""

import dataclasses
from typing import Literal

import numpy as np

from experiments.benchmarks import clipping, clipping_ways, harness
from experiments.fed_cdp import published
from fljax.defenses import clipping as clipping_lib
from fljax.defenses import specs
from fljax.defenses.definition import Setting
from fljax.driver.option import option

_DEFENSES = {
    "non_private": "none",
    "fed_sdp": "fed_sdp(clip=4, sigma=6)",
    "fed_cdp": "fed_cdp(clip=4, sigma=6)",
    "fed_cdp_decay": "fed_cdp(clip=6, decay_to=2, sigma=6)",
}
_NUM_ROUNDS = 100  # over which the clip decays
_COLUMNS = {
    "network": ("network", ""), "defense": ("defense", ""),
    "milliseconds": ("ms per iteration", ".4f"), "iqr_milliseconds": ("iqr", ".4f"),
    "ratio": ("x none", ".3f"), "printed": ("printed", ".3f"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.Flags):
    """No prefix."""

    networks: tuple[
        Literal["mnist", "cifar10", "lfw", "adult", "breast_cancer"], ...
    ] = option(
        ("mnist", "cifar10", "lfw", "adult", "breast_cancer"),
        "networks: B = 5, 4, 3, 3 and 4",
    )
    clients: int = option(10, "clients of the round", min=1)
    steps: int = option(100, "local iterations of each; the paper: 100", min=1)
    repeats: int = option(7, "interleaved timings of every defense", min=1)


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Times every defense; there is no target."""
    return [row for name in config.networks for row in _rows(name, config)], []


def _rows(name: clipping_ways.Name, config: Config) -> list[harness.Row]:
    problem = clipping_ways.build(name, config.clients, config.steps)
    setting = Setting(
        problem.loss_fn,
        clipping_lib.num_layers(problem.params),
        num_rounds=_NUM_ROUNDS,
        batch_size=problem.batch_size,
    )
    programs = {}
    for method, text in _DEFENSES.items():
        defense = specs.bind(specs.parse(text), setting)
        programs[method] = clipping.one_round(
            problem, defense.gradient, config.clients, config.steps,
            encode=defense.encode,
        )  # fmt: skip
    seconds = clipping.interleaved(programs, config.repeats)
    printed = {
        method: value
        for (_, method, _), value in published.numbers("table3", name).items()
    }
    per_step = 1e3 / (config.clients * config.steps)
    spent = {m: per_step * float(np.median(s)) for m, s in seconds.items()}
    return [
        {
            "benchmark": "local_iterations",
            "network": name,
            "defense": _DEFENSES[method],
            "clients": config.clients,
            "steps": config.steps,
            "batch_size": problem.batch_size,
            "repeats": config.repeats,
            "milliseconds": spent[method],
            "iqr_milliseconds": per_step * float(np.subtract(*np.percentile(s, [75, 25]))),
            "ratio": spent[method] / spent["non_private"],
            "printed": printed[method] / printed["non_private"],
        }
        for method, s in seconds.items()
    ]  # fmt: skip


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
