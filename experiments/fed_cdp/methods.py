"""What is trained: the defense at each point of a federation, and its epsilons.

The epsilons come in two ways that share no code: from the `NoiseSpec` of the very
defense that adds the noise, and from `privacy.statements` on the training's numbers.
"""

import itertools
from typing import NamedTuple

import numpy as np

from experiments import defense_options
from experiments.fed_cdp.settings import Config
from fljax import losses, packing, privacy
from fljax.defenses import specs
from fljax.defenses.definition import Setting
from fljax.defenses.parts import Part
from fljax.defenses.specs import Spec
from fljax.privacy import Promise, Releases, Statement, Training
from fljax.types import Array, Defense


class Trial(NamedTuple):
    """What one training is told.

    Attributes:
      rate: learning rate.
      spec: its defense, without alternatives.
    """

    rate: float
    spec: Spec


class Numbers(NamedTuple):
    """Hyper-parameters that one compiled program is given as it runs.

    Attributes:
      rate: [] learning rate.
      defense: numbers of each part of the spec, [].
    """

    rate: Array | float
    defense: specs.Numbers


class Variant(NamedTuple):
    """A defense in one federation: what is compiled once.

    Attributes:
      specs: that differ in their numbers only, at least one.
      clients: K.
      percent: of them in a round.
      rows: N_i.
    """

    specs: tuple[Spec, ...]
    clients: int
    percent: float
    rows: int

    @property
    def name(self) -> str:
        """Of the defense, as the paper calls it."""
        return defense_options.short_name(self.specs[0])

    @property
    def per_round(self) -> int:
        """K_t, as `participation.uniform` rounds it."""
        return max(1, round(self.percent / 100 * self.clients))

    def batches(self, run: Config) -> int:
        """Of one pass over a client's rows."""
        return int(packing.batches_per_epoch(np.array(self.rows), run.batch_size))

    def poisson(self, run: Config) -> bool:
        """Whether batches are drawn row by row."""
        return specs.needs_poisson(self.specs[0]) or run.batches == "poisson"


def variants(run: Config, rows: int) -> list[Variant]:
    """All that has to be compiled.

    Raises:
      ConfigError: for a text that is no defense.
    """
    alike: dict[tuple, list[Spec]] = {}
    for spec in defense_options.parse_all(run.defense):
        alike.setdefault(specs.structure(spec), []).append(spec)
    return [
        Variant(tuple(found), clients, percent, rows)
        for clients, percent in itertools.product(run.clients, run.percent)
        for found in alike.values()
    ]


def label(run: Config, variant: Variant, spec: Spec) -> str:
    """Of a point: what is swept beside the defense, and the numbers that are swept."""
    swept = len(variant.specs) > 1 or run.paper_table in ("table4", "table5")
    many = len(run.clients) > 1 or len(run.percent) > 1 or run.paper_table == "table2"
    found = [f"clients={variant.clients};participating_percent={variant.percent:g}"]
    found = found if many else []
    if swept:
        settings = (pair for part in spec.parts for pair in part.given)
        found += [
            f"{name}={value:g}" for name, value in settings if value != str(value)
        ]
    return ";".join(found)


def setting(
    run: Config, variant: Variant, loss_fn: losses.LossFn, layers: int
) -> Setting:
    """The training, as a defense sees it."""
    fixed = run.participation == "fixed"
    return Setting.of_clients(
        loss_fn,
        layers,
        variant.rows,
        run.batch_size,
        poisson=variant.poisson(run),
        num_rounds=run.num_rounds,
        drawn="fixed" if fixed else "all",
        participation=variant.per_round / variant.clients if fixed else 1.0,
        # Where any number may come, each is taken to be alone in its sum.
        num_summed=variant.per_round if fixed else 1,
    )


def releases(run: Config) -> Releases:
    """Noisy sums of a client that is in every round."""
    return Releases(run.num_rounds * run.local_steps, run.num_rounds)


def numbers(run: Config, at: Setting, trial: Trial) -> Numbers:
    """Those of a training, with a sigma in the place of a budget.

    Raises:
      ConfigError: for a budget that cannot be kept.
    """
    with defense_options.naming(trial.spec):
        settings = privacy.numbers_for(trial.spec, at, releases(run), run.delta)
    return Numbers(trial.rate, settings)


def defense(at: Setting, spec: Spec, settings: Numbers) -> Defense:
    """The defense of a training; its numbers may be traced.

    Raises:
      ConfigError: for concrete numbers out of range, or what does not go together.
    """
    with defense_options.naming(spec):
        return specs.bind(spec, at, settings.defense)


def promises(run: Config, built: Defense) -> list[Promise]:
    """What the noise of the defense itself promises."""
    return privacy.promises(built, releases(run), run.delta)


def largest_epsilon(found: Promise) -> float:
    """By loss distributions, over all clients."""
    return float(np.max(found.guarantee.epsilon_pld))


def statements(
    run: Config,
    variant: Variant,
    layers: int,
    copies: int,
    spec: Spec,
    settings: Numbers,
) -> list[Statement]:
    """Every epsilon that can be said of a training.

    Args:
      run: the flags.
      variant: the defense and its federation.
      layers: M.
      copies: clients that hold one and the same row, at most.
      spec: the defense.
      settings: its numbers, concrete.
    """
    found = []
    for part, values in zip(spec.parts, settings.defense, strict=True):
        if part.name in ("fed_sdp", "fed_cdp", "dp_sgd"):
            training = _training(run, variant, layers, copies, part, values)
            kind = "fed_sdp" if part.name == "fed_sdp" else "fed_cdp"
            found += privacy.statements(kind, training)
    return found


def _training(run, variant: Variant, layers, copies, part: Part, values) -> Training:
    """The training as an accountant sees it."""
    mode = part.values.get("mode")
    whole = part.name == "dp_sgd" or mode == "recommended"
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
        sigma=float(values["sigma"]),
        clip=float(max(values["clip"], values.get("decay_to", 0.0))),
        layers=1 if whole else layers,
        delta=run.delta,
        draws="each" if part.name == "fed_sdp" or mode == "per_example" else "one",
        batches="poisson" if variant.poisson(run) else "fixed",
        copies=copies,
        participants=run.participation,
        largest=min(run.batch_size, variant.rows),
    )
