"""Whether a search stopped short: how well the true rows would explain the messages.

Trajectory matching reports the misfit that its search left. Where that is more than noise,
the clients' rows as they are say whether anything better was there to be found. Like
`scoring` this has the truth, and no attack learns of it.
"""

from collections.abc import Iterator, Sequence

import jax
import numpy as np

from experiments.aia import result_rows
from experiments.aia.adversary import Adversary
from experiments.aia.adversary_config import MESSAGES
from experiments.aia.attacks import settings
from experiments.aia.setup import Setup
from experiments.tabular import targets
from experiments.tabular.targets import Targets
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.trajectory import FITS, clients
from fljax.auditing import doubts, fits
from fljax.results import Labels, Row

NAME, METRIC = "true_rows", "misfit"
_SEARCHING = "trajectory"  # linear inversion explains less however well it searches
_LONGER = 3  # times the steps that stopped short


def are_asked_for(found: Sequence[Row]) -> bool:
    """Whether trajectory matching left more than noise.

    Args:
      found: rows of the attacks of one adversary.
    """
    asked = _SEARCHING, METRIC
    left = [row.value for row in found if (row.attack, row.metric) == asked]
    return any(_is_more(value) for value in left)


def rows(labels: Labels, setup: Setup, adversary: Adversary) -> list[Row]:
    """The misfit of the true rows.

    Args:
      labels: of the rows.
      setup: of the point.
      adversary: of every seed.

    Returns:
      Nothing of clients that cannot be simulated as told or sent too little, and nothing
      at all where attacks are given everybody's rows.
    """
    truth, config = setup.targets, setup.config
    assert truth is not None
    if config.attack.score == "pooled":
        return []
    chosen = settings(
        _SEARCHING,
        config.attack,
        config.trajectory,
        adversary.messages.count,
        summed=adversary.transcript.member is not None,
    )
    assert isinstance(chosen, clients.Settings)
    each = [
        _of_seed(view, truth, at, chosen) for at, view in enumerate(adversary.views)
    ]
    about = labels, NAME, adversary.sight.setting, METRIC
    misfit = np.stack(each)
    compared = targets.only(truth, ~np.isnan(misfit))
    return result_rows.by_client(*about, misfit, compared)


def _of_seed(
    view: AdversaryView, truth: Targets, at: int, chosen: clients.Settings
) -> np.ndarray:
    """`[C]`, NaN for clients whose messages cannot be simulated or are too few."""
    assert view.messages is not None and view.transcript is not None
    known = jax.tree.map(lambda leaf: leaf[at], truth.known)
    everybody = fits.knowing_the_truth(view._replace(known=known), truth.value[at])
    told = np.asarray(view.messages.count) >= fits.LEAST_MESSAGES
    found = np.full(len(told), np.nan)
    if view.transcript.member is not None:  # sums are of everybody
        told = np.full_like(told, told.all())
    who = np.flatnonzero(told)
    if not who.size:
        return found
    alone = everybody if who.size == told.size else everybody.of(who)
    misfit = fits.misfit(alone, chosen)
    if misfit is not None:
        found[who] = misfit
    return found


def said(found: Sequence[Row]) -> Iterator[str]:
    """In words, of each point and adversary, what takes from what was not found.

    Args:
      found: rows of a run.
    """
    mine = [row for row in found if row.metric == METRIC and row.client != "all"]
    for of in dict.fromkeys(row[:4] + (row.setting, row.point) for row in mine):
        here = [row for row in mine if row[:4] + (row.setting, row.point) == of]
        true = {(row.seed, row.client): row.value for row in here if row.attack == NAME}
        left = {
            (row.seed, row.client): row.value
            for row in here
            if row.attack == _SEARCHING and (row.seed, row.client) in true
        }
        defense, setting, point = of[3:]
        named = [point] if point else []
        named += [] if defense == "none" or defense in point else [defense]
        named += [] if setting == MESSAGES.setting else [setting]
        where = f" ({', '.join(named)})" if named else ""
        if off := doubts.bad(np.array(list(true.values()))):
            yield f"{off}{where}: the training was not as the attacks were told"
        short = {
            who: value
            for who, value in left.items()
            if _is_more(value / max(true[who], 1.0))
        }
        if short:
            worst = max(short, key=lambda who: short[who] / max(true[who], 1.0))
            yield (
                f"the search of {_SEARCHING} stopped short{where} for {len(short)} of "
                f"{len(true)} clients of all seeds: misfit up to {short[worst]:.4g}, of the "
                f"true rows {true[worst]:.2g}. A longer one may find more: "
                f"--trajectory_iterations (try {_LONGER} times as many)"
            )


def _is_more(misfit: float) -> bool:
    """Whether it is more than noise; NaN, of a simulation that ran away, is."""
    return not misfit <= FITS
