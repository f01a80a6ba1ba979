"""What the program of accounting can be told."""

import dataclasses
import math
from typing import Literal, NamedTuple

from experiments.accounting import table6
from fljax.driver.option import FolderFlags, option

_TABLE_6 = table6.TRAININGS["mnist"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccountingConfig:
    """Prefix `accounting`. Defaults are the paper's for MNIST."""

    method: Literal["dp_sgd", "fed_cdp", "fed_sdp"] | None = option(
        None,
        "whose training to account for; dp_sgd is fed_cdp with all layers clipped "
        "together; none: Table VI of Wei et al. (2021)",
    )
    records: int = option(
        _TABLE_6.records,
        "records of a client N_i; of unequal ones the fewest, whose epsilon is the largest",
        min=1,
    )
    batch_size: int = option(_TABLE_6.batch_size, "batch size B", min=1)
    local_steps: int = option(_TABLE_6.local_steps, "local steps L", min=1)
    rounds: int = option(_TABLE_6.rounds, "rounds T", min=1)
    clients: int = option(_TABLE_6.clients, "clients K", min=1)
    clients_per_round: int = option(
        _TABLE_6.clients_per_round, "clients in a round K_t", min=1
    )
    sigma: float = option(
        _TABLE_6.sigma,
        "deviation of one draw of noise over the clip; 0: none",
        min=0,
        below=math.inf,
    )
    clip: float = option(
        _TABLE_6.clip, "C of each layer; no epsilon needs it", above=0, below=math.inf
    )
    layers: int = option(
        _TABLE_6.layers, "parts M that are clipped apart; of dp_sgd 1", min=1
    )
    delta: float = option(_TABLE_6.delta, "delta of every epsilon", above=0, below=1)
    draws: Literal["one", "each"] = option(
        "one", "draws of noise on a sum: one, or one for each example or client in it"
    )
    batches: Literal["poisson", "fixed", "without_replacement"] = option(
        "poisson",
        "fed_cdp, how batches are made: every record independently; disjoint ones, an "
        "epoch at a time; a fixed size drawn anew in each step",
    )
    copies: int = option(1, "fed_cdp: clients that hold the same record", min=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig(FolderFlags):
    """No prefix."""

    target_epsilon: float | None = option(
        None,
        "also print the noise and the number of rounds that keep this",
        above=0,
        below=math.inf,
    )
    notes: bool = option(
        False, "also print what each epsilon rests on, and what has no number"
    )
    run_dir: str | None = option(
        None, "folder for rows.jsonl and manifest.json; none: print only"
    )


class Settings(NamedTuple):
    """All that the program can be told."""

    accounting: AccountingConfig
    run: RunConfig
