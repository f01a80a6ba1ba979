"""Fed-SDP: each layer of a client's update clipped, noise once per client and round.

Wei, Liu, Wu, Su and Iyengar, "Gradient-Leakage Resilient Federated Learning" (ICDCS
2021), Algorithm 1: local training is as without a defense; of the delta, every layer m
(array of parameters) becomes `D_m / max(1, |D_m| / C) + N(0, (sigma C)^2)`, and the
server averages. At the client this is done before the message leaves it, at the server
after it arrived: the messages themselves are then as they were, and so is the record of
them.

Slips of the printed algorithm that are not followed: line 11 divides by the norm of the
gradient instead of that of the delta, and lines 15 and 16 divide by the number of
clients twice.

With M layers, one client's message changes a sum of messages by at most C sqrt(M), and
the noise of its own message alone has the multiplier sigma / sqrt(M). In the sum of
`num_summed` messages, each with noise of its own, it is sqrt(num_summed) times that,
provided that all of them are weighted equally and their senders (or the server) can be
trusted. Whoever sees messages, as the server does when the noise is the client's, meets
its noise alone. Sampling is 'all' where every client or any number may come: as many draws
of noise as there are clients, over their number, tell that number, so that no Poisson
sampling amplifies anything.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from fljax.defenses import clipping, noise
from fljax.defenses.checks import (
    check_choice,
    check_noise,
    check_positive,
    check_sampling,
)
from fljax.defenses.definition import CLIPPED_AND_NOISY, Choice, Definition, Setting
from fljax.defenses.effects import Effects
from fljax.types import Array, Defense, NoiseSpec, Sampling

Where = Literal["client", "server"]
_MODELS_ONLY = "whoever sees models only; the server has the messages as they were"
_ANYONE = "whoever sees messages"
_SUMS_ONLY = "whoever sees sums of messages and not whose they are"


def fed_sdp(
    *,
    clip: clipping.Clip,
    noise_scale: float | Array,
    sampling_rate: float | Array,
    num_layers: int,
    where: Where = "client",
    sampling: Sampling = "fixed",
    num_summed: int | Array = 1,
    num_rounds: int | None = None,
) -> Defense:
    """Fed-SDP; all numbers may be traced.

    Args:
      clip: [] C, or a schedule `(round) -> C`.
      noise_scale: [] the paper's sigma; 0 adds no noise.
      sampling_rate: [] probability of each client to take part in a round, 1 for 'all'.
      num_layers: M, `clipping.num_layers(params)`.
      where: 'client' acts before a message leaves, 'server' after it arrived.
      sampling: how clients are drawn: a 'fixed' number for each round, who may be seen;
        'all' where everyone or any number may come.
      num_summed: messages that are summed before the adversary sees anything.
      num_rounds: of the run, for which a schedule is checked.

    Returns:
      A `Defense` for `local.sgd(..., encode=defense.encode)` and
      `rounds.advance(..., receive=defense.receive)`.

    Raises:
      ValueError: for numbers out of range, unless they are traced; `encode` and
        `receive`, for a delta with other than M arrays.
    """
    check_choice("where", where, ("client", "server"))
    check_choice("sampling", sampling, ("fixed", "all"))
    check_sampling(sampling, sampling_rate)
    check_noise("noise_scale", noise_scale)
    check_positive("num_layers", num_layers)
    check_positive("num_summed", num_summed)
    root, observer = np.sqrt(num_layers), _observer(where, num_summed)
    spec = NoiseSpec(
        noise_multiplier=noise_scale * num_summed**0.5 / root,
        sensitivity=clipping.largest(clip, num_rounds) * root,
        sampling_rate=sampling_rate,
        adjacency="put a client without update in the place of one client, against "
        + observer,
        unit="client",
        sampling=sampling,
        against="messages" if observer == _ANYONE else "models",
    )

    def sanitise(key, delta, sender):
        clipping.check_layers(delta, num_layers)
        size = clipping.at_round(clip, sender.round)
        found = clipping.clipped(delta, clipping.per_layer(size))
        return jax.tree.map(jnp.add, found, noise.like(key, found, noise_scale * size))

    seam = {"encode" if where == "client" else "receive": sanitise}
    return Defense(**seam, noise=(spec,), name=f"fed_sdp at the {where}")


def _observer(where: Where, num_summed) -> str:
    if where == "server":
        return _MODELS_ONLY
    alone = not isinstance(num_summed, Tracer) and np.all(num_summed == 1)
    return _ANYONE if alone else _SUMS_ONLY


def _build(setting: Setting, *, clip, decay_to, sigma, where) -> Defense:
    return fed_sdp(
        clip=clipping.decaying(clip, decay_to, setting.num_rounds),
        noise_scale=sigma,
        sampling_rate=setting.participation,
        num_layers=setting.num_layers,
        where=where,
        sampling=setting.drawn,
        # Whoever sees messages meets the noise of one alone.
        num_summed=setting.num_summed if where == "server" else 1,
        num_rounds=setting.num_rounds,
    )


def _effects(*, clip, decay_to, sigma, where) -> Effects:
    return Effects(
        messages="per_layer",
        clip=clip,
        decay_to=decay_to,
        noise="messages",
        deviation=sigma,
        arrival=where == "server",
    )


DEFINITION = Definition(
    build=_build,
    effects=_effects,
    parameters=(
        *CLIPPED_AND_NOISY,
        Choice("where", "before a message leaves, or on arrival", ("client", "server")),
    ),
    acts="messages, or the server",
)
