"""What PyTorch's arrays are in a transcript."""

import jax
import numpy as np
import pytest

from fljax import transcript


def test_pytorchs_arrays_are_flaxs():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(2, 5, 3), torch.nn.BatchNorm2d(5), torch.nn.Flatten(),
        torch.nn.Linear(20, 4),
    )  # fmt: skip
    state = network.state_dict()
    found = transcript.from_torch(
        {name: array.numpy() for name, array in state.items()}
    )
    assert {"1/weight", "1/bias", "1/running_var"} < set(found)
    rng = np.random.default_rng(0)
    image = rng.normal(size=(1, 4, 4, 2)).astype(np.float32)
    row = rng.normal(size=(1, 20)).astype(np.float32)
    with torch.no_grad():
        filtered = network[0](torch.tensor(image.transpose(0, 3, 1, 2)))
        mapped = network[3](torch.tensor(row))
    ours = jax.lax.conv_general_dilated(
        image, found["0/kernel"], (1, 1), "VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip
    ours = np.asarray(ours) + found["0/bias"]
    np.testing.assert_allclose(ours.transpose(0, 3, 1, 2), filtered, atol=1e-5)
    ours = row @ found["3/kernel"] + found["3/bias"]
    np.testing.assert_allclose(ours, mapped, atol=1e-5)


def test_a_single_layers_arrays_have_no_folder():
    found = transcript.from_torch({"weight": np.zeros((2, 3)), "bias": np.zeros(2)})
    shapes = {name: array.shape for name, array in found.items()}
    assert shapes == {"kernel": (3, 2), "bias": (2,)}
