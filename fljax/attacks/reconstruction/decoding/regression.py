"""An affine mapping: the exact attack's form, by one regression on all messages.

For least squares and full batches `delta = W (sent - optimum)` whatever the number of
local steps (Observation 1 of Xu & Neglia, 2021), and the regression of `sent` on
`delta` has the optimum as its intercept. Elsewhere it is a Newton step towards the
client's optimum, the Hessian being read from how its deltas vary.

Divergence: eqs. (6) and (7) are solved together, in the inverse form, and not by Adam.
With weights of one and a full mask the estimate is that of `reconstruct_linear`.

What the messages leave open the cut-off `rcond` decides: smaller singular values count
as zero, and there the estimate stays where the server's models were. Messages that
travelled as float32 carry rounding: about 1e-5 suits them.
"""

import jax.numpy as jnp

from fljax.attacks.reconstruction.decoding import messages as messages_lib
from fljax.attacks.reconstruction.decoding.messages import Decoded, Messages
from fljax.attacks.reconstruction.least_squares import matmul


def affine(messages: Messages, *, rcond: float | None = None) -> Decoded:
    """Least squares of the sent models on the deltas of ONE client.

    Args:
      messages: of the client.
      rcond: singular values below `rcond` times the largest count as zero; None takes
        the precision of the messages times the larger of R and P.

    Returns:
      A `Decoded`. Its loss is that of the mapping read forwards, `G(theta)` being the
      pseudo-inverse of the regression's slope times `theta - estimate`.
    """
    sent, delta, mask = messages_lib.observed(messages)
    if rcond is None:
        rcond = messages_lib.default_rcond(messages)
    weight = mask.astype(sent.dtype)
    centre_in = messages_lib.moments(sent, weight).mean
    centre_out, scale = messages_lib.moments(delta, weight)
    root = jnp.sqrt(weight)[:, None]
    regressors = root * (delta - centre_out) / scale
    targets = root * (sent - centre_in)
    slope, _, rank, s = jnp.linalg.lstsq(regressors, targets, rcond)  # slope [P, P]
    estimate = (centre_in - matmul(centre_out / scale, slope))[0]
    forwards = jnp.linalg.pinv(slope / scale.T, rtol=rcond)

    def mapped(theta):
        return centre_out + matmul(theta - centre_in, forwards)

    misfit = jnp.sum(jnp.square(mapped(sent) - delta), axis=1)
    return Decoded(
        estimate=estimate,
        loss=jnp.sum(mask * misfit) / jnp.maximum(jnp.sum(mask), 1),
        left=jnp.linalg.norm(mapped(estimate[None])),
        rank=rank.astype(jnp.int32),
        singular_values=s,
        determined=rank == sent.shape[1],
    )
