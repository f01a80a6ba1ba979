"""What an attack gives back. The truth is in none of it, nor what was made with it."""

import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from fljax.types import Array

_NOTHING: Mapping[str, Any] = types.MappingProxyType({})


class Prediction(NamedTuple):
    """Values of each client's sensitive column.

    Attributes:
      value: `[C, n]` number of the candidate, -1 for none; for a continuous attribute
        its encoded value.
      diagnostics: numbers to be reported, metric -> `[C]`.
      details: what a caller may go on with, by name; each attack says what.
      setting: what the adversary has to be: passive, active_10, ...
    """

    value: Array
    diagnostics: Mapping[str, Array] = _NOTHING
    details: Mapping[str, Any] = _NOTHING
    setting: str = "passive"


class LabelEstimate(NamedTuple):
    """Label distributions of each client.

    Attributes:
      value: `[C, K]`.
      baseline: `[C, K]` what is estimated without any message.
      setting: as above.
      others: `[C, K]` what the same attack says of other clients' messages in the place
        of a client's own; None where there are none.
    """

    value: Array
    baseline: Array
    setting: str = "passive"
    others: Array | None = None


class Reconstruction(NamedTuple):
    """Rows that an attack found in one message of each client.

    Attributes:
      value: `[C, n, D]` inputs, the sensitive block last; NaN behind a client's rows.
      setting: as above.
    """

    value: Array
    setting: str = "passive"


class NotApplicable(NamedTuple):
    """Why an attack was not run, in one line."""

    why: str


Estimate = Prediction | LabelEstimate | Reconstruction | NotApplicable
Estimates = dict[str, Estimate]
