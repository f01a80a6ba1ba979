"""Decoding of a client's local optimum from what it was sent and what it returned.

Algorithm 3 of Xu & Neglia, "What else is leaked when eavesdropping Federated
Learning?", 2021: learn a mapping `G(theta) ~ delta` from a client's messages (eq. 6) and
look for the model that it leaves where it is (eq. 7). For any model and any algorithm
of federated learning, for only messages are seen.

    seen = decoding.of_exchange(exchange)
    found = decoding.affine(seen)
    found = decoding.learned(key, seen, decoding.mlp(seen.sent.shape[1]))

* `affine`: a regression on all messages, with `reconstruct_linear` as a special case.
* `learned`: any `Mapping`, by Adam; `mlp` is the paper's.
* `simulated`: clients whose rows are themselves learned; not from the paper.
"""

from fljax.attacks.reconstruction.decoding.ensemble import Simulation
from fljax.attacks.reconstruction.decoding.mappings import Adam, Mapping, learned, mlp
from fljax.attacks.reconstruction.decoding.messages import (
    Decoded,
    Members,
    Messages,
    last_returned,
    of_client,
    of_exchange,
)
from fljax.attacks.reconstruction.decoding.regression import affine
from fljax.attacks.reconstruction.decoding.simulation import (
    EXPLAINS,
    Settings,
    simulated,
    simulated_client,
)

__all__ = [
    "EXPLAINS",
    "Adam",
    "Decoded",
    "Mapping",
    "Members",
    "Messages",
    "Settings",
    "Simulation",
    "affine",
    "last_returned",
    "learned",
    "mlp",
    "of_client",
    "of_exchange",
    "simulated",
    "simulated_client",
]
