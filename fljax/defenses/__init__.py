"""Defenses against leakage: what a client or the server does to gradients and messages.

* `dp_sgd`: examples clipped to a total norm, Gaussian noise on their sum.
* `fed_cdp`: examples clipped layer by layer, noise in every local step, three modes.
* `fed_sdp`: a client's update clipped layer by layer, noise at the client or the server.
* `median`: examples clipped to their batch's median norm; no guarantee.
* `noise`: Gaussian or Laplace noise on updates; no guarantee.
* `bounding`: a message's norm, or its numbers, clipped without noise; no guarantee.
* `pruning`: small entries zeroed, DSSGD; no guarantee.
* `clipping`: norms, clip schedules, the clipped sum.
* `composition`: several defenses as one.
* `effects`: what each does to a client's training, as data.
* `own`: what a definition builds, with errors of one's own called by their defense.
* `specs`: text to `Spec` to `Defense`, over the `registry` of `definition.Definition`; `table`: all of
  them, with units and bounds.

A defense is a factory that returns a `fljax.types.Defense`: what happens at the gradient
of a local step, to a message before it leaves, and to a message on arrival. What adds the
noise also states the `NoiseSpec` that `fljax.privacy` turns into a privacy guarantee.
"""

from fljax.defenses.composition import compose

__all__ = ["compose"]
