"""What the adversary keeps: views of a transcript (`views`), and its file format.

A saved transcript is two files that any program can read without JAX:

* `NAME.npz`: uncompressed NumPy arrays: integers `round` `[R]`, increasing, and
  `client` `[R, K]` (-1 for an empty slot) and, for every parameter of the model, floats
  `params/LAYER/NAME` `[R, ...]`, the model that was sent, and `delta/LAYER/NAME`
  `[R, K, ...]`, sent minus returned. These may be NaN or infinite, as a diverged run
  is: a reader who needs finite ones has to look.
  Where only sums of messages were seen, a slot is a sum, `delta` its weighted mean, and
  integers `member` `[R, K, M]` name the clients in it (-1 for nobody), floats `share`
  `[R, K, M]` their weights, which add up to 1. Where only global models were, K is 0.
* `NAME.json`: format and version, the shape and dtype of every array, the sha256 of the
  `.npz`, and `about`, a free object (batch size, learning rate, ...).

`Recorder` writes them round by round from any framework's arrays (PyTorch's by way of
`from_torch`), `flower.record` and `nvflare.record` (modules of their own) from the messages
of a Flower strategy or an NVFlare workflow, `save` from the arrays of a run.
"""

from fljax.transcript.archive import load, save
from fljax.transcript.arrays import from_torch
from fljax.transcript.recorder import Recorder
from fljax.transcript.views import (
    ClientView,
    TranscriptError,
    client_view,
    exchange,
    returned_model,
)

__all__ = [
    "ClientView", "Recorder", "TranscriptError", "client_view", "exchange", "from_torch",
    "load", "returned_model", "save",
]  # fmt: skip
