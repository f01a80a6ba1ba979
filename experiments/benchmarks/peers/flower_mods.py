"""Flower's mods around a client: its real records, in a message that only carries them."""

import logging
import types

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod

from experiments.benchmarks.peers import canaries
from experiments.benchmarks.peers.training import Setting, Shipped
from fljax.types import NoiseSpec

_DELTA = 1e-5
_QUANTILE, _RATE, _FIRST = 0.5, 0.2, 0.1  # of Flower's adaptive strategy, as it comes


def fixed(setting: Setting) -> Shipped:
    """`fixedclipping_mod` at the median norm of messages, so that it binds."""
    norm = setting.sizes.message
    return Shipped(
        message=lambda *both: _through(fixedclipping_mod, norm, *both)[0],
        simulated=f"norm_clipping(norm={norm:.8g})",
    )


def adaptive(setting: Setting) -> Shipped:
    """`adaptiveclipping_mod`, with the server's own rule for the next norm."""
    del setting
    norm, bits = [_FIRST], []

    def message(sent, returned):
        array, bit = _through(adaptiveclipping_mod, norm[-1], sent, returned)
        bits.append(bit)
        return array

    def after():
        # Andrew et al. 2021, as the server's wrapper has it, without its noise.
        norm.append(norm[-1] * float(np.exp(-_RATE * (1 - np.mean(bits) - _QUANTILE))))
        bits.clear()

    return Shipped(message=message, after=after)


def local_dp(setting: Setting, epsilon: float) -> Shipped:
    """`LocalDpMod` with the median norm of messages as its clip and sensitivity."""
    norm = setting.sizes.message
    mod = LocalDpMod(norm, norm, epsilon, _DELTA)
    deviation = norm * np.sqrt(2 * np.log(1.25 / _DELTA)) / epsilon
    noise = NoiseSpec(
        deviation / norm, norm, 1.0, "add or remove the update of one client",
        unit="client", sampling="all",
    )  # fmt: skip

    def message(sent, returned):
        return _through(mod, norm, sent, returned)[0]

    return Shipped(
        message=message,
        release=canaries.of_message(setting.people, setting.plan, message),
        stated=lambda: epsilon,
        noise=noise,
        simulated=f"norm_clipping(norm={norm:.8g}) + gaussian(deviation={deviation:.8g})",
    )


def _through(mod, norm: float, sent, returned):
    """The model that leaves a client, and the bit of adaptive clipping."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    ask = _message(sent, config=ConfigRecord({"clipping_norm": norm}))
    reply = _message(returned, metrics=MetricRecord({"num-examples": 1}))
    content = mod(ask, None, lambda *_: reply).content
    arrays = {name: a.numpy() for name, a in content["arrays"].items()}
    cast = {name: a.astype(sent[name].dtype) for name, a in arrays.items()}
    return cast, content["metrics"].get("norm_bit")


def _message(params, **records):
    arrays = ArrayRecord({name: Array(array.copy()) for name, array in params.items()})
    content = RecordDict({"arrays": arrays, **records})
    return types.SimpleNamespace(content=content, has_error=lambda: False)
