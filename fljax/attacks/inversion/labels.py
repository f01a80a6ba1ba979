"""Labels from the gradient of the last layer, and a loss for labels that are unknown.

Of the cross-entropy of one example, the gradient with respect to logit k is its
probability minus one if k is the label: the label's is the only negative one. The bias
of the last layer shows it, and the kernel `[H, K]` shows it times the activations that
the layer reads, which must not be negative (ReLU, sigmoid).
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import lax

from fljax import losses
from fljax.types import Array, Params


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


def infer(layer: Mapping[str, jax.Array], count: int) -> jax.Array:
    """The labels of a batch, in increasing order.

    One example: iDLG (Zhao et al. 2020), exact under the conditions above. More: the
    class of the most negative gradient `count` times, whose gradient is each time
    raised by what one example takes from it, in the manner of LLG (Wainakh et al.
    2022); exact for equal probabilities (an untrained model), a guess for others.

    Args:
      layer: gradient (or sent minus returned) of the last layer: `kernel` `[H, K]`
        and, if it has one, `bias` `[K]`, which is preferred.
      count: B, examples in the batch.

    Returns:
      `[B]` int32.
    """
    slopes = layer["bias"] if "bias" in layer else jnp.sum(layer["kernel"], axis=0)
    classes = len(slopes)
    # Were all probabilities 1/K, the n_k labels k would make slope k the scale times
    # 1/K - n_k/B: the negative slopes give the scale, which a clip may have changed.
    below = slopes < 0
    absent = jnp.maximum(1 - jnp.sum(below) / classes, 1 / classes)
    impact = -jnp.sum(jnp.where(below, slopes, 0.0)) / absent / count

    def pick(slopes, _):
        label = jnp.argmin(slopes)
        return slopes.at[label].add(impact), label

    _, labels = lax.scan(pick, slopes, length=count)
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
