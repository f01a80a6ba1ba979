"""The published attacks as `(key, params, observed, y=None) -> Inversion`.

* `dlg`: Zhu et al., "Deep Leakage from Gradients", 2019. The label is optimised with
  the example, which starts from N(0, 1).
* `cpl`: Wei et al., "A Framework for Evaluating Client Privacy Leakages in Federated
  Learning", 2020, and the attack of their "Gradient-Leakage Resilient Federated
  Learning", 2021: iDLG's label, patterned seed, sum of squared differences, L-BFGS.
* `inverting_gradients`: Geiping et al., "Inverting Gradients", 2020: cosine distance,
  total variation, Adam on signs, images clamped to [0, 1]. Their learning rate falls in
  three jumps, here as a cosine. It copes best with ReLU and max-pooling, whose gradient
  jumps, and it settles pixels that the model never reads.

`y` is given, or else inferred from the last layer of `observed`. Attack points are
those of `points`:

    attack = presets.cpl(points.gradient_of(loss_fn), (1, 28, 28, 1))
    found = attack(key, params, observed)
"""

from collections.abc import Callable, Sequence

from fljax import losses
from fljax.attacks.inversion import labels, objectives, points, seeds, solvers, spaces
from fljax.attacks.inversion.engine import PAPER, Budget, Inversion, invert

Attack = Callable[..., Inversion]
# (key, params, observed, y=None) -> Inversion

MANY_UPDATES = Budget(num_iterations=2000, record_every=20)


def dlg(
    loss_fn: losses.LossFn,
    shape: Sequence[int],
    num_classes: int,
    *,
    point: Callable[[losses.LossFn], points.Simulate] = points.gradient_of,
    solver: solvers.Solver | None = None,
    budget: Budget = PAPER,
) -> Attack:
    """DLG.

    Args:
      loss_fn: the client's, of one example.
      shape: `(B, ...)` of the examples.
      num_classes: K.
      point: `(loss of a label distribution) -> simulate`.
      solver: by default `solvers.lbfgs()`.
      budget: how long to search.

    Returns:
      The attack; it takes no `y`.
    """
    simulate = point(labels.expected(loss_fn, num_classes))
    space = spaces.examples(shape, seeds.gaussian, num_classes=num_classes)
    chosen = solver or solvers.lbfgs()

    def attack(key, params, observed):
        return invert(key, params, observed, simulate, space, chosen, budget=budget)

    return attack


def cpl(
    simulate: points.Simulate,
    shape: Sequence[int],
    *,
    seed: seeds.Seed = seeds.patterned,
    solver: solvers.Solver | None = None,
    prior: objectives.Prior | None = None,
    probe: points.Simulate | None = None,
    budget: Budget = PAPER,
) -> Attack:
    """CPL.

    Args:
      simulate: what the client did, from `points`.
      shape: `(B, h, w, channels)` of the examples.
      seed: where they start.
      solver: by default `solvers.lbfgs()`, which is CPL's; `solvers.whitened_lbfgs()`
        is a stronger attacker.
      prior: what images look like; CPL has none. A `Gaussian` is seen by
        `solvers.whitened_lbfgs()`, too.
      probe: what a client would send, of which nothing is zeroed; from it the model's
        own probabilities are inferred, which tell the labels of several examples. CPL
        does not ask for them.
      budget: how long to search.
    """
    chosen = solver or solvers.lbfgs()

    def attack(key, params, observed, y=None):
        if y is None:
            told = None if probe is None else labels.probabilities(probe, params, shape)
            y = labels.infer(labels.last_layer(observed), shape[0], told)
        space = spaces.examples(shape, seed, y=y)
        return invert(
            key, params, observed, simulate, space, chosen, prior=prior, budget=budget
        )

    return attack


def inverting_gradients(
    simulate: points.Simulate,
    shape: Sequence[int],
    *,
    variation: float = 1e-3,
    learning_rate: float = 0.1,
    budget: Budget = MANY_UPDATES,
) -> Attack:
    """Inverting Gradients.

    Args:
      simulate: what the client did, from `points`.
      shape: `(B, h, w, channels)` of the examples.
      variation: weight of the total variation.
      learning_rate: of Adam, at first.
      budget: how long to search; one iteration is one update.
    """
    solver = solvers.adam(learning_rate, budget.num_iterations, signed=True)
    prior = objectives.total_variation(variation)

    def attack(key, params, observed, y=None):
        if y is None:
            y = labels.infer(labels.last_layer(observed), shape[0])
        space = spaces.examples(shape, seeds.gaussian, y=y, box=(0.0, 1.0))
        return invert(
            key, params, observed, simulate, space, solver,
            distance=objectives.cosine_distance, prior=prior, budget=budget,
        )  # fmt: skip

    return attack
