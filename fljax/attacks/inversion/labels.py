"""Labels from the gradient of the last layer, and a loss for labels that are unknown.

Of the cross-entropy of one example, the gradient with respect to logit k is its
probability minus one if k is the label: the label's is the only negative one. The bias
of the last layer shows it, of several examples the mean. The kernel `[H, K]` shows it
times the activations that the layer reads, which must not be negative (ReLU, sigmoid);
those of several examples weigh them.
"""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
from jax import lax

from fljax import losses, precision
from fljax.attacks.inversion import points
from fljax.types import Array, Params

_SCALES = 64  # of a clip, that are tried
_SLACK = 1e-3  # of a probability, for rounding
_TINY = 1e-30


def last_layer(observed: Params) -> Mapping[str, jax.Array]:
    """The last `flax.linen.Dense` of a message of one of our models.

    Raises:
      ValueError: there is none.
    """
    numbers = [
        int(name.removeprefix("Dense_")) for name in observed if name[:6] == "Dense_"
    ]
    if not numbers:
        raise ValueError(
            "labels: expected a layer named Dense_<number> in the message, found "
            f"{', '.join(observed)}; give its kernel and bias yourself"
        )
    return observed[f"Dense_{max(numbers)}"]


@precision.full
def infer(
    layer: Mapping[str, jax.Array], count: int, probabilities: Array | None = None
) -> jax.Array:
    """The labels of a batch, in increasing order.

    One example: iDLG (Zhao et al. 2020), exact under the conditions above. More: the
    class of the most negative gradient `count` times, whose gradient is each time
    raised by what one example takes from it, in the manner of LLG (Wainakh et al.
    2022); exact for equal probabilities, a bias and fewer examples than classes, so
    that each label's gradient is negative; a guess for others. An untrained model has
    about the same ones for all inputs, but not equal ones: given what they are at some
    input (ours), those labels are taken, from these or from equal ones, whose gradient
    points best where this one does.

    Args:
      layer: gradient (or sent minus returned) of the last layer: `kernel` `[H, K]`
        and, if it has one, `bias` `[K]`, which is preferred.
      count: B, examples in the batch.
      probabilities: `[K]` the model's, at any input.

    Returns:
      `[B]` int32.
    """
    slopes = _slopes(layer)
    equal = _of_equal(slopes, count)
    if probabilities is None or count == 1:
        return equal

    def likeness(labels, p):
        expected = p - jnp.zeros_like(slopes).at[labels].add(1 / count)
        return jnp.dot(expected, slopes) / (jnp.linalg.norm(expected) + _TINY)

    # A clip may have scaled the gradient, whose norm without one is below the root of 2.
    scales = jnp.linalg.norm(slopes) / jnp.linspace(2**0.5, 0.05, _SCALES)
    lacks = probabilities[None] - slopes[None] / (scales[:, None] + _TINY)
    found = jax.vmap(_most_lacking, (0, None, None))(lacks, 1 / count, count)
    alike = jax.vmap(likeness, (0, None))(found, probabilities)
    best = jnp.argmax(alike)
    even = likeness(equal, jnp.full_like(slopes, 1 / len(slopes)))
    return jnp.where(alike[best] > even, found[best], equal)


@precision.full
def probabilities(
    simulate: points.Simulate, params: Params, shape: Sequence[int]
) -> jax.Array:
    """The model's at a grey input, from what it would send.

    Two labels tell a clip, which scales gradients, from the probabilities.

    Args:
      simulate: what a client does, from `points`.
      params: the model.
      shape: `(B, ...)` of the examples.

    Returns:
      `[K]`; equal ones where they cannot be told, as of two classes. Of several steps
      a mean over those that the client takes.
    """

    def slopes(label):
        y = jnp.full(shape[0], label, jnp.int32)
        return _slopes(last_layer(simulate(params, jnp.full(shape, 0.5), y)))

    first, second = slopes(0), slopes(1)
    ratio = jnp.sum(second[2:]) / jnp.sum(first[2:])
    scale = second[0] - ratio * first[0]
    found = (second / scale).at[1].add(1.0)
    sound = jnp.isfinite(found).all() & (found.min() > -_SLACK)
    sound &= jnp.abs(found.sum() - 1) < _SLACK
    return jnp.where(sound, jnp.clip(found, 0, 1), 1 / len(found))


def _slopes(layer: Mapping[str, jax.Array]) -> jax.Array:
    """The gradient by each logit `[K]`, of the kernel up to a positive factor."""
    return layer["bias"] if "bias" in layer else jnp.sum(layer["kernel"], axis=0)


def _of_equal(slopes: jax.Array, count: int) -> jax.Array:
    classes = len(slopes)
    # Were all probabilities 1/K, the n_k labels k would make slope k the scale times
    # 1/K - n_k/B: the negative slopes give the scale, which a clip may have changed.
    below = slopes < 0
    absent = jnp.maximum(1 - jnp.sum(below) / classes, 1 / classes)
    impact = -jnp.sum(jnp.where(below, slopes, 0.0)) / absent / count
    return _most_lacking(-slopes, impact, count)


def _most_lacking(lacks: jax.Array, taken: Array | float, count: int) -> jax.Array:
    """`count` times the class that lacks most, in increasing order; each takes so much."""

    def pick(lacks, _):
        label = jnp.argmax(lacks)
        return lacks.at[label].add(-taken), label

    _, labels = lax.scan(pick, lacks, length=count)
    return jnp.sort(labels).astype(jnp.int32)


def expected(loss_fn: losses.LossFn, num_classes: int) -> losses.LossFn:
    """`loss_fn` averaged over a distribution of labels.

    For cross-entropy this is the loss of DLG (Zhu et al. 2019), where the label is
    optimised with the example.

    Args:
      loss_fn: `(params, x, label) -> []`.
      num_classes: K.

    Returns:
      `(params, x, probabilities [K]) -> []`.
    """

    def loss(params, x, probabilities: Array):
        every = jnp.arange(num_classes)
        values = jax.vmap(loss_fn, (None, None, 0))(params, x, every)
        return jnp.dot(probabilities, values)

    return loss
