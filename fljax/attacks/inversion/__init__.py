"""Reconstructs a client's examples from a gradient or an update.

* `presets`: the published attacks, DLG, CPL and Inverting Gradients.
* `points`: what the attacker simulates: a gradient, or an update of several steps.
* `spaces`, `seeds`, `labels`: which examples are possible, where they start.
* `objectives`, `solvers`: what is minimised, and how; `gaussian`: what is known of images.
* `engine`: the loop. `parallel.map_items` runs it for many clients.
"""

from fljax.attacks.inversion.engine import Budget, Inversion, invert

__all__ = ["Budget", "Inversion", "invert"]
