"""Defenses of a client: what she does to her gradients before they leave her.

* `dp_sgd`: examples clipped to a total norm, Gaussian noise on their sum.

A defense is a factory that returns a `fljax.types.Defense`. What adds the noise also
states the `NoiseSpec` that `fljax.accounting` turns into a privacy guarantee.
"""
