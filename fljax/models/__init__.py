"""The shipped models, as flax.linen modules behind the `Model(init, apply)` seam.

Any other framework fits by giving the two functions itself. Every layer with
parameters is one of `TabularDense`, `flax.linen.Dense` and `PatchConv`, and returns its
pre-activation.
"""

from fljax.models.autoencoder import Autoencoder, autoencoder
from fljax.models.convolution import PatchConv, extract_patches, max_pool
from fljax.models.images import ConvNet, SigmoidLeNet, cnn, lenet
from fljax.models.initialisers import Initialisation
from fljax.models.seam import FlaxApply, from_flax
from fljax.models.tabular import MLP, TWO_HIDDEN, TabularDense, linear, mlp

__all__ = [
    "MLP",
    "TWO_HIDDEN",
    "Autoencoder",
    "ConvNet",
    "FlaxApply",
    "Initialisation",
    "PatchConv",
    "SigmoidLeNet",
    "TabularDense",
    "autoencoder",
    "cnn",
    "extract_patches",
    "from_flax",
    "lenet",
    "linear",
    "max_pool",
    "mlp",
]
