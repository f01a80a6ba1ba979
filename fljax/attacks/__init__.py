"""Attacks on one client's messages. None of them is ever given the truth.

* `attribute`: model-based attribute inference on any model.
* `gradient`: gradient-based attribute inference on the messages.
* `reconstruct`: a client's optimal linear model from the messages.
* `inversion`: a client's examples from a gradient or an update.
"""
