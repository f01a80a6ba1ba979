"""What clients send: the only place where their images are turned into messages."""

from collections.abc import Callable

import jax
import numpy as np

from experiments.gradient_leakage import truth as truth_lib
from experiments.gradient_leakage import views
from experiments.gradient_leakage.blocks import Blocks
from experiments.gradient_leakage.settings import Config
from experiments.gradient_leakage.targets import Network
from experiments.gradient_leakage.truth import Truth
from experiments.gradient_leakage.views import View
from fljax.attacks import streams
from fljax.defenses import clipping
from fljax.driver.config import ConfigError
from fljax.types import Params

_NOISE_KEY = 1
# What runs once for each client takes longer to compile well than to run.
_QUICKLY_COMPILED = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}


class Senders:
    """All clients at one network; views of one kind share a compiled program."""

    def __init__(self, run: Config, truth: Truth, network: Network, blocks: Blocks):
        self._run, self._truth, self._network = run, truth, network
        self._blocks = blocks
        self._programs: dict[tuple, Callable] = {}

    def observed(self, view: View, pruned: float, clients: np.ndarray) -> Params:
        """What is seen of some clients, leaves `[B, ...]`.

        Args:
          view: what of it is seen.
          pruned: fraction of its entries that is zeroed.
          clients: `[B]` int32 numbers.

        Raises:
          ConfigError: something that is seen is not finite.
        """
        owned = truth_lib.first(self._truth, 1) if view.example else self._truth
        clips = views.clips(self._run, view.shown)
        traced = tuple(None if clip is None else np.float32(clip) for clip in clips)
        seen = self._program(view)(
            (clients, owned.x[clients], owned.y[clients]),
            (self._network.params, traced, np.float32(pruned)),
        )
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(seen)):
            raise ConfigError(
                f"--rate: a client's steps diverge with {self._run.rate:g}, expected less"
            )
        return seen

    def _program(self, view: View) -> Callable:
        kind = views.kind(view)
        if kind not in self._programs:
            layers = clipping.num_layers(self._network.params)
            see = views.observe(self._run, view, self._network.loss_fn, layers)
            seed = self._run.seed

            def one(item, shared):
                (client, x, y), (params, clips, pruned) = item, shared
                key = streams.key(seed, _NOISE_KEY, client)
                return see(key, params, x, y, clips, pruned)

            self._programs[kind] = self._blocks.compiled(one, _QUICKLY_COMPILED)
        return self._programs[kind]
