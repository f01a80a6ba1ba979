"""NVFlare's filters of what a client sends, as `DXO`s and `Shareable`s go through them."""

import logging
from typing import Any

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.filters import ExcludeVars, PercentilePrivacy, SVTPrivacy

from experiments.benchmarks.peers.training import Setting, Shipped


def percentile(setting: Setting, at: int | None = None) -> Shipped:
    """`PercentilePrivacy`: small changes are zeroed, large ones cut off at gamma a step.

    Args:
      setting: the training.
      at: percentile of changes that is gamma; None for gamma as it comes.
    """
    own = (
        PercentilePrivacy()
        if at is None
        else PercentilePrivacy(gamma=setting.sizes.changes[at])
    )
    # The limit is of a step, and what is zeroed is so first.
    limit = own.gamma * setting.plan.steps(len(setting.people.clients[0].y))
    zeroed = f"pruning(ratio={own.percentile / 100:g})"
    told = f"{zeroed} + value_clipping(limit={limit:.8g})"
    return _through(setting, own, simulated=told)


def sparse_vector(setting: Setting) -> Shipped:
    """`SVTPrivacy` as it comes; it keeps its own ledger."""
    own = SVTPrivacy()
    clients = len(setting.people.clients)  # who each have a filter of their own
    return _through(setting, own, stated=lambda: own.get_privacy_spent() / clients)


def exclude(setting: Setting) -> Shipped:
    """`ExcludeVars`: the first layer never leaves the clients."""
    names = "w1", "b1"
    return _through(setting, ExcludeVars(exclude_vars=[*names]), fixed=names)


def _through(setting: Setting, own: Any, **more: Any) -> Shipped:
    logging.getLogger("nvflare").setLevel(logging.ERROR)
    own.logger.setLevel(logging.ERROR)
    steps = setting.plan.steps(len(setting.people.clients[0].y))

    def message(sent, returned):
        difference = {name: returned[name] - sent[name] for name in sent}
        dxo = DXO(DataKind.WEIGHT_DIFF, difference)
        dxo.set_meta_prop(MetaKey.NUM_STEPS_CURRENT_ROUND, steps)
        left = from_shareable(own.process(dxo.to_shareable(), FLContext())).data
        return {
            name: np.asarray(array + left.get(name, 0), array.dtype)
            for name, array in sent.items()
        }

    return Shipped(message=message, **more)
