"""Every registered defense with every word and a decaying clip, and some together."""

import itertools

import numpy as np
import pytest

from fljax.defenses import specs
from fljax.defenses.definition import BUDGET, Choice, Definition, Setting
from fljax.defenses.registry import DEFENSES

_NOISE = ("sigma", "deviation", "scale")  # numbers that say how much there is
_TOGETHER = (
    "fed_cdp(clip=0.5, sigma={0}, mode=per_batch) + pruning(ratio=0.5)"
    " + fed_sdp(clip=0.5, sigma={0}, where=server)"
)


def _number(known) -> str:
    if known.name in _NOISE:
        return "{0}"
    middle = {"decay_to": 0.25, "norm": 0.01, "limit": 0.001}.get(known.name, 0.5)
    least, most = max(known.min, known.above), min(known.max, known.below)
    if not least < middle < most:  # between its own bounds, if it has them
        middle = (least + most) / 2 if np.isfinite(least + most) else least + 0.5
    return f"{known.read(str(middle)):g}"


def _texts(name: str, known: Definition):
    words = [p for p in known.parameters if isinstance(p, Choice)]
    words = [p for p in words if p.name not in BUDGET]
    chosen = [*itertools.product(*(p.choices for p in words))]
    decays = known.parameter("decay_to") is not None
    for number, told in enumerate([*chosen, *chosen[:1] * decays]):
        said = dict(zip([p.name for p in words], told, strict=True))
        decaying = number == len(chosen)
        for each in known.parameters:
            if isinstance(each, Choice) or each.name in BUDGET:
                continue
            if (
                each.required
                or each.name in _NOISE
                or each.name == "decay_to"
                and decaying
            ):
                said[each.name] = _number(each)
        yield f"{name}({', '.join(f'{key}={value}' for key, value in said.items())})"


TEXTS = [t for name, known in DEFENSES.items() for t in _texts(name, known)]
TEXTS.append(_TOGETHER)


def marked(texts):
    """The texts as parameters; further words of one defense are of the slow tier."""
    texts, met = [*texts], set()
    for text in texts:
        name = text if " + " in text else text.partition("(")[0]
        yield pytest.param(text, marks=pytest.mark.slow if name in met else ())
        met.add(name)


# Those whose noise is all that an empty batch, or a message of zeros, leaves.
NOISY = [text for text in TEXTS if "{" in text and "pruning" not in text]


def built(text, loss_fn, clients, *, scale=0.3, layers=4, num_rounds=20):
    """The defense of a text in a small federation, with noise of a scale."""
    spec = specs.parse(text.format(scale))
    each = np.ones(clients)
    setting = Setting(
        loss_fn,
        layers,
        num_rounds,
        batches="poisson" if specs.needs_poisson(spec) else "fixed",
        sampling_rate=0.2 * each,
        batch_size=2 * each,
        drawn="fixed",
        participation=0.5,
    )
    return specs.bind(spec, setting)
