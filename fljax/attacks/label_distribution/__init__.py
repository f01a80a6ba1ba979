"""Label-distribution inference: what a client's rows are labelled, from one message.

Rajani et al., "Adversarial Predictions of Data Distributions Across Federated
Internet-of-Things Devices", 2023, Algorithm 1:

* `shadow_clients`: clients that the adversary makes up from proxy rows and trains.
* `pca`: principal components of their messages, chunk by chunk.
* `predictor`: from components to a distribution.
* `attack`: all of it.
* `fusion`: components and closed forms, weighed together (not in the paper).
* `posterior`: what both say beside what was known before (not in the paper).
* `rules`: closed forms to compare with.
* `simulated_path`: a client's local training, simulated as a function of its labels.
"""

from fljax.attacks.label_distribution.attack import (
    Attack,
    Settings,
    fit,
    infer,
    predict,
    predict_fused,
    predict_posterior,
)
from fljax.attacks.label_distribution.fusion import Readers

__all__ = [
    "Attack",
    "Readers",
    "Settings",
    "fit",
    "infer",
    "predict",
    "predict_fused",
    "predict_posterior",
]
