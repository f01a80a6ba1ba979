"""What is trained: the defense of each method at each point, and its epsilons.

| method          | what it does (`fljax.defenses`)                                      |
|-----------------|----------------------------------------------------------------------|
| `non_private`   | nothing                                                              |
| `fed_sdp`       | a client's update clipped and noisy, at the client or at the server  |
| `fed_cdp`       | every example clipped layer by layer, noise in every local step      |
| `fed_cdp_decay` | the same, the clip falling linearly over the rounds                  |
| `dp_sgd`        | every example clipped as a whole, noise in every local step          |
| `median`        | clipped to the batch's median, noise of deviation sigma C on the sum |

The epsilons come in two ways that share no code: from the `NoiseSpec` of the very
defense that adds the noise, and from `accounting.statements` on the training's numbers.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from experiments import named_defenses
from experiments.fed_cdp.settings import Config, Method, Mode
from fljax import losses, packing, privacy
from fljax.defenses import clipping
from fljax.driver.config import ConfigError
from fljax.privacy import Statement, Training
from fljax.types import Array, Defense

# As `experiments.named_defenses` calls them.
_NAMES = {
    "non_private": "none",
    "fed_sdp": "fed_sdp",
    "fed_cdp": "fed_cdp",
    "fed_cdp_decay": "fed_cdp",
    "dp_sgd": "dp_sgd",
    "median": "median",
}
_MODED = ("fed_cdp", "fed_cdp_decay")
_PRIVATE = ("fed_sdp", *_MODED, "dp_sgd")


class Numbers(NamedTuple):
    """Hyper-parameters that one compiled program is given as it runs.

    Attributes:
      rate: [] learning rate.
      clip: [] C.
      sigma: [] noise scale.
    """

    rate: Array | float
    clip: Array | float
    sigma: Array | float


class Variant(NamedTuple):
    """A method in one federation: what is compiled once.

    Attributes:
      method: which.
      mode: of Fed-CDP; 'per_example' elsewhere, where it means nothing.
      clients: K.
      percent: of them in a round.
      rows: N_i.
    """

    method: Method
    mode: Mode
    clients: int
    percent: float
    rows: int

    @property
    def name(self) -> str:
        """The method, and its mode where that is not the printed algorithm's."""
        printed = self.method not in _MODED or self.mode == "per_example"
        return self.method if printed else f"{self.method}_{self.mode}"

    @property
    def per_round(self) -> int:
        """K_t, as `participation.uniform` rounds it."""
        return max(1, round(self.percent / 100 * self.clients))

    def batches(self, run: Config) -> int:
        """Of one pass over a client's rows."""
        return int(packing.batches_per_epoch(np.array(self.rows), run.batch_size))

    def poisson(self, run: Config) -> bool:
        """Whether batches are drawn row by row."""
        asked = named_defenses.needs_poisson(self.method, self.mode)
        return asked or run.batches == "poisson"


def variants(run: Config, rows: int) -> list[Variant]:
    """All that has to be compiled."""
    found = []
    for clients, percent in itertools.product(run.clients, run.percent):
        for method in run.methods:
            modes = run.modes if method in _MODED else ("per_example",)
            found += [Variant(method, m, clients, percent, rows) for m in modes]
    return found


def points(run: Config, variant: Variant) -> Iterator[tuple[str, float, float]]:
    """`(label, clip, sigma)` of all that a variant is trained with."""
    swept = len(run.clips) > 1 or len(run.sigmas) > 1
    swept = swept or run.paper_table in ("table4", "table5")
    many = len(run.clients) > 1 or len(run.percent) > 1 or run.paper_table == "table2"
    where = f"clients={variant.clients};participating_percent={variant.percent:g}"
    lead = [where] if many else []
    if variant.method == "non_private":
        yield ";".join(lead), run.clips[0], 0.0
        return
    clips = run.clips[:1] if variant.method == "fed_cdp_decay" else run.clips
    for clip, sigma in itertools.product(clips, run.sigmas):
        shown = f"clip={clip:g};sigma={sigma:g}"
        if variant.method == "fed_cdp_decay":
            shown = f"clip={run.decay[0]:g}..{run.decay[1]:g};sigma={sigma:g}"
        yield ";".join([*lead, shown] if swept else lead), clip, sigma


def defense(
    run: Config, variant: Variant, loss_fn: losses.LossFn, layers: int, told: Numbers
) -> Defense:
    """The defense of a variant; its numbers may be traced."""
    batches, fixed = variant.batches(run), run.participation == "fixed"
    at_server = run.where == "server"
    setting = named_defenses.Setting(
        loss_fn,
        layers,
        run.num_rounds,
        mode=variant.mode,
        batches="poisson" if variant.poisson(run) else "fixed",
        sampling_rate=1 / batches,
        batch_size=variant.rows / batches,
        where=run.where,
        drawn="fixed" if fixed else "all",
        participation=variant.per_round / variant.clients if fixed else 1.0,
        # Elsewhere its own noise is all that counts: messages are seen, or their number.
        num_summed=variant.per_round if fixed and at_server else 1,
    )
    clip: clipping.Clip = told.clip
    if variant.method == "fed_cdp_decay":
        first, last = run.decay
        clip = clipping.linear_decay(first, last, num_rounds=run.num_rounds)
    number = told.sigma * told.clip if variant.method == "median" else told.sigma
    return named_defenses.make(_NAMES[variant.method], setting, number, clip)


def checked(build: Callable[[], Any], what: str) -> Any:
    """Turns what a defense or an accountant refuses into one line for the user."""
    try:
        return build()
    except ValueError as error:
        raise ConfigError(f"{what}: {error}") from None


def training(
    run: Config, variant: Variant, layers: int, copies: int, told: Numbers
) -> Training | None:
    """The training as an accountant sees it; None where nothing is promised.

    Args:
      run: the flags.
      variant: the method and its federation.
      layers: M.
      copies: clients that hold one and the same row, at most.
      told: its numbers, concrete.
    """
    if variant.method not in _PRIVATE:
        return None
    whole = variant.method == "dp_sgd" or variant.mode == "recommended"
    each = variant.method == "fed_sdp" or (
        variant.method in _MODED and variant.mode == "per_example"
    )
    per_round = variant.per_round
    if run.participation == "poisson":
        per_round = variant.percent / 100 * variant.clients
    return Training(
        rounds=run.num_rounds,
        local_steps=run.local_steps,
        batch_size=variant.rows / variant.batches(run),
        records=variant.rows,
        clients=variant.clients,
        clients_per_round=per_round,
        sigma=float(told.sigma),
        clip=float(max(run.decay) if variant.method == "fed_cdp_decay" else told.clip),
        layers=1 if whole else layers,
        delta=run.delta,
        draws="each" if each else "one",
        batches="poisson" if variant.poisson(run) else "fixed",
        copies=copies,
    )


def statements(variant: Variant, told: Training) -> list[Statement]:
    """Every epsilon that can be said of a training."""
    kind = "fed_sdp" if variant.method == "fed_sdp" else "fed_cdp"
    return privacy.statements(kind, told)


def guarantees(run: Config, built: Defense) -> list[privacy.Guarantee]:
    """What the noise of the defense itself promises."""
    found = []
    for spec in built.noise:
        steps = run.num_rounds * (run.local_steps if spec.unit == "record" else 1)
        found.append(privacy.guarantee(spec, steps, run.delta, rounds=run.num_rounds))
    return found


def largest_epsilon(found: privacy.Guarantee) -> float:
    """By loss distributions, over all clients."""
    return float(np.max(found.epsilon_pld))
