"""The training of Wei et al. on MNIST, as their Table VI accounts for it."""

from fljax.privacy import Training

MNIST = Training(
    rounds=100,
    local_steps=100,
    batch_size=5,
    records=500,
    clients=1000,
    clients_per_round=100,
    sigma=6.0,
    clip=4.0,
    layers=3,
    delta=1e-5,
    copies=10,
)
