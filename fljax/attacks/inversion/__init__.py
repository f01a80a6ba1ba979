"""Reconstructs a client's examples from a gradient or an update.

* `presets`: the published attacks, DLG, CPL and Inverting Gradients.
* `points`: what the attacker simulates: a gradient, or an update of several steps.
* `spaces`, `seeds`, `labels`: which examples are possible, where they start.
* `objectives`, `solvers`: what is minimised, and how.
* `engine`: the loop; `clients`: over many clients.
"""

from fljax.attacks.inversion.clients import over_clients
from fljax.attacks.inversion.engine import Budget, Inversion, invert

__all__ = ["Budget", "Inversion", "invert", "over_clients"]
