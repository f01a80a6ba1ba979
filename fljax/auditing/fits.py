"""How well models and messages fit the true rows: scores' side, where the truth is known.

An attack that fails may have been told wrong rows, or another training than there was. So
messages are compared with what the true rows would have sent (`fljax.attacks.trajectory`,
whose simulation has nothing left to guess then): the *misfit* is about 1, or less, if all
is right, however short of that an attack's search stops. Where it is not, some usual slips are
tried: what fits with one of them was probably recorded or declared so.
"""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from fljax.attacks import attribute, needs
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.trajectory import FITS, clients, effort
from fljax.attacks.trajectory.attack import Inference
from fljax.auditing import declared_noise, learnt, pace, replay, slips, undeclared
from fljax.auditing.truth import Truth
from fljax.types import Array

_CLEARLY = 0.5  # of the misfit as declared, and with other targets, that a slip leaves
_ALIKE = 1.1  # times the least misfit, of a second slip that is told
_MESSAGES = 60  # of each client, evenly spread, tell enough
LEAST_MESSAGES = 3  # from which noise is told from what is none


class Fit(NamedTuple):
    """How well the audited rows, the messages and the declared training fit.

    Attributes:
      explained: `[C]` percent of the variation of each client's targets that the last
        models explain; NaN where nobody knows.
      misfit: `[C]` of the messages with the true rows, infinite for NaN; None where
        the training is not known or cannot be simulated, or messages are too few.
      slip: what would make them fit, in words; empty if nothing that was tried does.
      lacking: that messages have less noise than was declared (`declared_noise`), so that
        a misfit is understated; empty where they have it.
      unlike: what messages show of another training than the declared one (`undeclared`,
        `pace`), which may pass for noise; empty where they show nothing.
      paced: what `pace` shows, also where misfits are large.
      by_chance: `[C]` misfit up to which noise alone may leave that of some client.
    """

    explained: np.ndarray
    misfit: np.ndarray | None = None
    slip: str = ""
    lacking: str = ""
    unlike: str = ""
    paced: str = ""
    by_chance: np.ndarray | float = 0.0

    @property
    def contradicted(self) -> str:
        """Why messages may tell more than is shown, however small the misfit."""
        return self.lacking or self.unlike


def of_rows(
    view: AdversaryView, truth: Truth, settings: clients.Settings, most_steps: int
) -> Fit:
    """Compares the messages with the true rows.

    Args:
      view: of the audited rows.
      truth: about them.
      settings: of the simulation.
      most_steps: that are simulated of a message.
    """
    rows, limits = knowing_the_truth(view, truth.sensitive), (settings, most_steps)
    (lacking, wholly), unlike = declared_noise.lacking(view), undeclared.found(view)
    simulated, paced = _simulated(rows, *limits) if _tells(rows) else None, ""
    found = None if simulated is None else _finite(simulated.misfit)
    if simulated is not None:
        paced = pace.found(rows, simulated.pace, lambda: _honest(rows, *limits))
        if np.median(simulated.misfit) <= FITS:
            unlike = unlike or paced
    told, chance = (lacking, unlike, paced), _by_chance(view)
    plain = Fit(learnt.explained(rows), found, "", *told, by_chance=chance)
    if found is None:  # as declared, rounds may run away
        if not (_tells(rows) and _simulates(rows, *limits)):
            return plain
    elif np.median(found) <= FITS and not wholly:
        return plain
    turned = _turned(view, truth)
    supposed = itertools.islice(
        itertools.chain(slips.tried(rows), turned), 1 if wholly else None
    )  # no defense
    tried = ((name, each, _simulated(each, *limits)) for name, each in supposed)
    others = [
        (float(np.median(left)), name, each, left)
        for name, each, found_so in tried
        if found_so is not None and pace.is_usual(each, found_so.pace)
        for left in (_finite(found_so.misfit),)
    ]
    if not others:
        return plain
    first, *rest = sorted(others, key=lambda each: each[0])
    least, best, other, left = first
    most = FITS
    if found is not None and not wholly:
        most = min(FITS, _CLEARLY * float(np.median(found)))
    if least > most or _fits_others(other, left, *limits):
        return plain
    slip = f"they would fit if {best} (misfit {least:.2g})"
    if rest and rest[0][0] <= min(_ALIKE * least, most):
        near, also, another, left = rest[0]
        if not _fits_others(another, left, *limits):
            slip += f", or if {also} ({near:.2g})"
    return plain._replace(slip=slip)


def _by_chance(view: AdversaryView) -> np.ndarray:
    """0 of clients whose messages have no noise, as of all rows in a step."""
    assert view.messages is not None
    noisy = view.training.sends_noise(view.sizes)
    return noisy * of_noise(np.asarray(view.messages.count), len(view.clients))


def of_noise(messages: np.ndarray, clients: int) -> np.ndarray:
    """Misfit that noise alone leaves of one client or more in at most 5 % of audits.

    By F, whose ratio is that of R squares to R - 1: as if all noise lay in one direction,
    where its size is least known.

    Args:
      messages: `[C]` R, of a client; below `LEAST_MESSAGES` nothing is told.
      clients: of the audit.
    """
    level = 0.95 ** (1 / clients)
    enough = messages >= LEAST_MESSAGES
    count = np.where(enough, messages, LEAST_MESSAGES)
    return np.where(enough, stats.f.ppf(level, count, count - 1), 0.0)


def _turned(view: AdversaryView, truth: Truth) -> Iterator[tuple[str, AdversaryView]]:
    """The sensitive column's two values the other way round, as numbers of texts may be."""
    if not view.continuous and len(view.candidates) == 2:
        name = "the sensitive column's two values are the other way round"
        yield name, knowing_the_truth(view, 1 - np.asarray(truth.sensitive))


def _fits_others(view: AdversaryView, own: np.ndarray, *limits) -> bool:
    """Whether messages would fit nearly as well if large targets were those of others' rows.

    Of a training that moves less than messages do most of them passes for noise, and any
    rows fit. Clients whose targets are all alike cannot tell.

    Args:
      view: what is supposed.
      own: misfit `[C]` of the true rows there.
      limits: as of `_misfit`.
    """
    known = view.known
    targets, mask = np.array(known.y), np.asarray(known.mask)
    for mine, kept in zip(targets, mask, strict=True):
        rising = np.flatnonzero(kept)[np.argsort(mine[kept], kind="stable")]
        mine[rising] = np.roll(mine[rising], len(rising) // 2)
    changed = np.any(targets != np.asarray(known.y), axis=1)
    if not changed.any():
        return False
    found = _misfit(view._replace(known=known._replace(y=targets)), *limits)
    if found is None:
        return False
    return float(np.median(own[changed])) > _CLEARLY * float(np.median(found[changed]))


def knowing_the_truth(view: AdversaryView, sensitive: Array) -> AdversaryView:
    """The view of somebody who knows the sensitive column, and has nothing to infer.

    Args:
      view: of the rows, whose other columns are known as they are.
      sensitive: `[C, n]` number of the true candidate, or the encoded value.
    """
    block = np.asarray(sensitive)
    if not view.continuous:
        block = np.asarray(view.candidates)[block]
    rows = jnp.asarray(np.atleast_3d(block), jnp.float32)
    every = jax.tree.map(np.asarray, attribute.complete(view.known.public, rows))
    nothing = np.zeros((1, 0), np.float32)
    return view._replace(
        known=view.known._replace(public=every), candidates=nothing, continuous=False
    )


def misfit(view: AdversaryView, settings: clients.Settings) -> np.ndarray | None:
    """How far the messages of each client are from what its true rows would have sent.

    Args:
      view: from `knowing_the_truth`.
      settings: of the simulation; what they say of a search does not count.

    Returns:
      `[C]`, about 1 where all is right, infinite for NaN; None where nothing simulates
      these clients as told, or messages are too few to tell noise from what is none.
    """
    return _misfit(view, settings) if _tells(view) else None


def _tells(view: AdversaryView) -> bool:
    """Whether messages are enough to tell noise from what is not noise."""
    assert view.messages is not None
    training = view.training
    drawn = training.sends_noise(view.sizes).any()
    whole = not drawn and not training.remembers
    enough = np.min(view.messages.count) >= LEAST_MESSAGES
    return bool(enough or (whole and not view.defense and view.sees == "messages"))


def _simulates(
    view: AdversaryView, settings: clients.Settings, most_steps: float
) -> bool:
    """Whether there is something that simulates these clients as told."""
    if settings.search.estimate_scale or needs.missing(clients.NEEDS, view, settings):
        return False
    training, own = view.training, view.training.local_steps(view.sizes)
    return effort.simulated(training, own, settings.epoch_steps) <= most_steps


def _misfit(
    view: AdversaryView, settings: clients.Settings, most_steps: float = math.inf
) -> np.ndarray | None:
    """`[C]`; None where nothing simulates these clients as told, or rounds run away."""
    found = _simulated(view, settings, most_steps)
    return None if found is None else _finite(found.misfit)


def _simulated(
    view: AdversaryView, settings: clients.Settings, most_steps: float
) -> Inference | None:
    """What is left of messages, of rows that are all known."""
    if not _simulates(view, settings, most_steps):
        return None
    assert view.messages is not None
    least = int(np.min(view.messages.count))
    some = _MESSAGES if least > _MESSAGES else None
    found = clients.infer(view, settings._replace(messages=some))
    return None if np.min(found.simulated) < 1 else found


def _honest(
    view: AdversaryView, settings: clients.Settings, most_steps: float
) -> Array | None:
    """Pace `[C, 2]` of clients that train as declared; None where nobody knows."""
    again = replay.sent_again(view)
    found = None if again is None else _simulated(again, settings, most_steps)
    return None if found is None else found.pace


def _finite(misfit: Array) -> np.ndarray:
    """`[C]`, for NaN infinity."""
    return np.nan_to_num(np.asarray(misfit), nan=np.inf, posinf=np.inf)
