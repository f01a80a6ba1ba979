"""The compiled attack on every client, which is handed messages and nothing else of it.

What the adversary knows of a method are numbers, so that messages of all methods are
attacked by one compiled program, and examples' gradients by a second one.
"""

from collections.abc import Callable

import jax
import numpy as np

from experiments.gradient_leakage import adversary, knowledge
from experiments.gradient_leakage.blocks import Blocks
from experiments.gradient_leakage.settings import Config
from experiments.gradient_leakage.targets import Network, Targets
from experiments.gradient_leakage.views import View
from fljax.attacks import streams
from fljax.attacks.inversion import Inversion
from fljax.defenses import clipping
from fljax.types import Params

_ATTACK_KEY = 2
_REHEARSAL_KEY = 4


class Attack:
    """All attacks on one network, compiled as they are needed."""

    def __init__(self, run: Config, targets: Targets, network: Network, blocks: Blocks):
        self._run, self._targets, self._network = run, targets, network
        self._blocks = blocks
        self._programs: dict[bool, Callable] = {}
        self._noises: dict[View, np.float32] = {}

    def reconstruct(
        self, view: View, pruned: float, clients: np.ndarray, observed: Params
    ) -> Inversion:
        """Attacks some clients.

        Args:
          view: what is seen of them.
          pruned: fraction of it that is zeroed.
          clients: `[B]` int32 numbers, which the draws of a search come from.
          observed: leaves `[B, ...]`, a message or one example's gradient of each.

        Returns:
          NumPy leaves `[B, ...]`.
        """
        params = self._network.params
        layers = clipping.num_layers(params)
        known = knowledge.known(self._run, view, layers, pruned)
        known = known._replace(noise=self._noise(view))
        program = self._program(view.example)
        return jax.device_get(program((clients, observed), (params, known)))

    def _noise(self, view: View) -> np.float32:
        if self._targets.public is None:
            return np.float32(0)
        if view not in self._noises:
            sent = 1 if view.example else self._run.images
            shape = (sent, *self._targets.shape[1:])
            params, loss_fn = self._network.params, self._network.loss_fn
            rehearse = knowledge.noise_variance(self._run, view, loss_fn, params, shape)
            key = streams.key(self._run.seed, _REHEARSAL_KEY, 0)
            self._noises[view] = np.float32(jax.jit(rehearse)(key))
        return self._noises[view]

    def _program(self, example: bool) -> Callable:
        if example not in self._programs:
            images = self._run.images_sought(example)
            search = adversary.attack(
                self._run,
                self._network.loss_fn,
                (images, *self._targets.shape[1:]),
                self._targets.num_classes,
                example=example,
                prior=self._targets.public,
            )
            seed = self._run.seed

            def one(item, shared):
                (client, observed), (params, known) = item, shared
                return search(
                    streams.key(seed, _ATTACK_KEY, client), params, observed, known
                )

            self._programs[example] = self._blocks.compiled(one)
        return self._programs[example]
