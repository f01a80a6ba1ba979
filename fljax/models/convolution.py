"""Convolution as patches and one matrix product, and max-pooling.

Under per-client or per-example kernels `lax.conv` becomes a grouped convolution, which
XLA:CPU runs many times slower than a batched matrix product. Patches are slices, so
that derivatives of any order are pads and sums.
"""

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

Window = tuple[int, int]
Padding = tuple[Window, Window]
# ((top, bottom), (left, right)): rows and columns of zeros
VALID: Padding = ((0, 0), (0, 0))


class PatchConv(nn.Module):
    """Convolution layer whose output is the pre-activation, with flax's parameters.

    `patches` and the parameters say all that the layer does:
    `out = patches(x) @ kernel.reshape(-1, out) + bias`. So the gradient of one
    example's loss with respect to the kernel is
    `einsum("...hwi,...hwo->...io", patches, d loss / d out)`, reshaped.

    Attributes:
      features: output channels.
      kernel_size: rows and columns of the kernel.
      strides: steps in rows and columns.
      padding: zeros around the image, as ((top, bottom), (left, right)).
      use_bias: whether a bias `[out]` is added.
      kernel_init: initialiser of the kernel `[rows, columns, in, out]`.
      bias_init: initialiser of the bias.
    """

    features: int
    kernel_size: Window
    strides: Window = (1, 1)
    padding: Padding = VALID
    use_bias: bool = True
    kernel_init: Callable = nn.initializers.lecun_normal()
    bias_init: Callable = nn.initializers.zeros_init()

    def patches(self, x: jax.Array) -> jax.Array:
        """What the kernel meets at every output pixel; `x` as in `__call__`.

        Returns:
          `[..., h', w', rows * columns * in]`, in the order of the raveled kernel.
        """
        return extract_patches(x, self.kernel_size, self.strides, self.padding)

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps `x` `[..., h, w, in]` to the pre-activation `[..., h', w', out]`."""
        patches = self.patches(x)
        shape = (*self.kernel_size, x.shape[-1], self.features)
        kernel = self.param("kernel", self.kernel_init, shape)
        out = patches @ kernel.reshape(-1, self.features)
        if self.use_bias:
            bias = self.param("bias", self.bias_init, (self.features,))
            out = out + jnp.broadcast_to(bias, out.shape)
        return out


def extract_patches(
    x: jax.Array, kernel_size: Window, strides: Window, padding: Padding
) -> jax.Array:
    """Windows of images, one per output pixel of a convolution.

    Args:
      x: `[..., h, w, in]` float.
      kernel_size: rows and columns of a window.
      strides: steps in rows and columns.
      padding: zeros around the image, as ((top, bottom), (left, right)).

    Returns:
      `[..., h', w', rows * columns * in]`.

    Raises:
      ValueError: no window fits, or the pixels are not floating-point numbers.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"images: expected float pixels in [0, 1], got {x.dtype}")
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [*padding, (0, 0)])
    height, width = x.shape[-3:-1]
    if height < kernel_size[0] or width < kernel_size[1]:
        raise ValueError(
            f"images: expected at least {kernel_size[0]} x {kernel_size[1]} pixels "
            f"where the kernel reads, got {height} x {width}"
        )
    # Columns first, then rows: 5 + 5 slices for a 5 x 5 kernel, where 25 compile longer.
    starts = _every_start(width, kernel_size[1], strides[1])
    wide = jnp.concatenate([x[..., columns, :] for columns in starts], axis=-1)
    starts = _every_start(height, kernel_size[0], strides[0])
    return jnp.concatenate([wide[..., rows, :, :] for rows in starts], axis=-1)


def max_pool(x: jax.Array, size: int = 2) -> jax.Array:
    """Maximum over disjoint windows; what does not fill one is left out.

    The gradient of equal maxima is shared among them.

    Args:
      x: `[..., h, w, channels]`.
      size: rows and columns of a window.

    Returns:
      `[..., h // size, w // size, channels]`.

    Raises:
      ValueError: no window fits.
    """
    *lead, height, width, channels = x.shape
    rows, columns = height // size, width // size
    if not rows or not columns:
        raise ValueError(
            f"images: expected at least {size} x {size} pixels where they are pooled, "
            f"got {height} x {width}"
        )
    whole = x[..., : rows * size, : columns * size, :]
    windows = whole.reshape(*lead, rows, size, columns, size, channels)
    return windows.max(axis=(-4, -2))


def _every_start(length: int, size: int, stride: int) -> Sequence[slice]:
    """Where each element of a kernel of `size` reads, over all its positions."""
    return [slice(k, length - size + 1 + k, stride) for k in range(size)]
