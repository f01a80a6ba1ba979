"""Answers about made-up rows, and what an audit says of them."""

import numpy as np

from fljax.auditing import scoring
from fljax.auditing.measuring import Controls
from fljax.auditing.truth import Truth


def truth(sensitive, unit=1.0, labels=None):
    sensitive = np.asarray(sensitive)
    count, size = sensitive.shape
    return Truth(
        sensitive=sensitive,
        mask=np.ones((count, size), bool),
        unit=unit,
        labels=np.zeros((count, 2)) if labels is None else np.asarray(labels),
        rows=np.zeros((count, size, 1)),
        scale=np.ones(1),
    )


def judged(about, controls=None, **answers):
    continuous = about.sensitive.dtype.kind == "f"
    controls = controls or Controls()
    return scoring.lines(answers, about, continuous=continuous, controls=controls)
