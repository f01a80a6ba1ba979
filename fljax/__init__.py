"""fljax: what does a client leak in federated learning, and which defense stops it?

Data flows one way: data -> partition -> schedule -> local update -> round ->
transcript -> attack -> metric -> report. Read `types`, `local`, `rounds`, `transcript`,
`attacks.adversary`, `attacks.registry` in this order to know the library.

* `audit`: what a recorded training tells of the rows that its clients have.
* `federation`, `train`: a training of one's own model and rows, under any defense.
* `transcript`: records a training of any framework, and reads what was recorded.
* `attacks`, `defenses`, `privacy`: attacks by name, what is done against them, and what
  that costs in epsilon.
* `data`: data sets, and any CSV file.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from fljax import attacks, data, defenses, federation, privacy, transcript
    from fljax.auditing.library import audit
    from fljax.federation import train

__version__ = "0.1.0"
__all__ = [
    "attacks",
    "audit",
    "data",
    "defenses",
    "federation",
    "privacy",
    "train",
    "transcript",
]

_FUNCTIONS = {"audit": "fljax.auditing.library", "train": "fljax.federation"}


def __getattr__(name: str) -> typing.Any:
    """Imports what is asked for; importing fljax itself imports nothing."""
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    if name in __all__:
        return importlib.import_module(f"fljax.{name}")
    raise AttributeError(f"module 'fljax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
