"""The compiled attack on every client: what she shows, and what is made of it.

`observe` turns clients into messages, `attack` is handed messages and nothing else of
them. What the adversary knows of a method are numbers, so that messages of all methods
are attacked by one compiled program, and examples' gradients by a second one.
"""

from collections.abc import Callable, Iterator

import jax
import numpy as np

from experiments.gradient_leakage import adversary
from experiments.gradient_leakage import victims as victims_lib
from experiments.gradient_leakage import views as views_lib
from experiments.gradient_leakage.settings import Config
from experiments.gradient_leakage.victims import Victim, Victims
from experiments.gradient_leakage.views import View
from fljax import parallel
from fljax.attacks.inversion import Inversion, over_clients
from fljax.defenses import clipping
from fljax.driver.stage_cache import StageCache
from fljax.types import Array

_NOISE_KEY, _ATTACK_KEY = 1, 2
# What runs once for each client takes longer to compile well than to run.
_QUICKLY_COMPILED = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}


class Attacks:
    """All attacks on one network, compiled as they are needed."""

    def __init__(self, run: Config, victims: Victims, victim: Victim):
        self._run, self._victims, self._victim = run, victims, victim
        count = len(victims.x)
        self._over = parallel.mesh(min(len(jax.devices()), count))
        self._block = min(self._over.size * run.at_once, count)
        self._observers: dict[tuple, Callable] = {}
        self._attackers: dict[bool, Callable] = {}

    def run(
        self,
        view: View,
        pruned: float,
        progress: Callable[[int], None],
        part: StageCache,
    ) -> Iterator[tuple[int, Inversion]]:
        """Attacks client after client.

        Args:
          view: what is seen.
          pruned: fraction of it that is zeroed.
          progress: called with the number of clients done since the last call.
          part: what a run that was stopped has finished of it.

        Yields:
          Position of the client and what was found of her, NumPy leaves.
        """
        run, params = self._run, self._victim.params
        layers = clipping.num_layers(params)
        shown = victims_lib.only(self._victims, 1) if view.example else self._victims
        observe = self._observer(view, layers)
        attack = self._attacker(view.example)
        known = adversary.known(run, view, layers, pruned)
        clip = np.float32(views_lib.clip_of(run, view.method))
        count = len(shown.x)
        for start in range(0, count, self._block):
            index = np.arange(start, start + self._block)
            mine = np.minimum(index, count - 1)

            def invert(mine=mine):
                numbers = mine.astype(np.int32)
                seen = observe(
                    (numbers, shown.x[mine], shown.y[mine]),
                    (params, clip, np.float32(pruned)),
                )
                return jax.device_get(attack((numbers, seen), (params, known)))

            found = part.cached(f"clients{start}", invert, Inversion)
            done = index[index < count]
            for place, client in enumerate(done):
                yield int(client), jax.tree.map(lambda leaf, i=place: leaf[i], found)
            progress(len(done))

    def _observer(self, view: View, layers: int):
        kind = views_lib.kind(view)
        if kind in self._observers:
            return self._observers[kind]
        see = views_lib.observe(self._run, view, self._victim.loss_fn, layers)
        base = self._run.seed

        def one(item, shared):
            (number, x, y), (params, clip, pruned) = item, shared
            return see(_key(base, _NOISE_KEY, number), params, x, y, clip, pruned)

        self._observers[kind] = self._spread(one, _QUICKLY_COMPILED)
        return self._observers[kind]

    def _attacker(self, example: bool):
        if example not in self._attackers:
            shape = self._victims.x.shape[1:]
            base = self._run.seed
            reconstruct = adversary.attack(
                self._run,
                self._victim.loss_fn,
                (1, *shape[1:]) if example else shape,
                self._victims.num_classes,
                example=example,
            )

            def one(item, shared):
                (number, observed), (params, known) = item, shared
                return reconstruct(
                    _key(base, _ATTACK_KEY, number), params, observed, known
                )

            self._attackers[example] = self._spread(one)
        return self._attackers[example]

    def _spread(self, fun: Callable, options: dict | None = None):
        return jax.jit(
            lambda items, shared: over_clients(
                fun, items, shared, self._over, self._run.at_once
            ),
            compiler_options=options,
        )


def _key(seed: int, purpose: int, client: Array):
    key = jax.random.fold_in(jax.random.key(seed), purpose)
    return jax.random.fold_in(key, client)
