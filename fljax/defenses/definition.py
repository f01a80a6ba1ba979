"""How a defense is described: its numbers with units and bounds, and how it is built.

A defense is one file with a `Definition` and one line in `fljax.defenses.registry`. A
user's own need not be registered: in text it is called `module:attribute`.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fljax import losses, packing
from fljax.defenses.checks import LEAST_CLIP
from fljax.defenses.effects import Effects
from fljax.types import Array, Defense, Sampling

_LEAST, _MOST = 1e-37, 1e38  # in magnitude, of what float32 has


@dataclasses.dataclass(frozen=True)
class Number:
    """A finite number that a defense takes. It may be traced, and differ by seed and client.

    Attributes:
      name: keyword in text and of `build`.
      meaning: what it is, with its unit.
      default: value where it is not given; None with `optional` stays None.
      optional: whether it may be left out without a default.
      min, above, max, below: bounds, the first and third inclusive.
    """

    name: str
    meaning: str
    default: float | None = None
    optional: bool = False
    min: float = -math.inf
    above: float = -math.inf
    max: float = math.inf
    below: float = math.inf

    @property
    def required(self) -> bool:
        return self.default is None and not self.optional

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        bounds = [
            f"{sign} {bound:g}"
            for sign, bound in (
                (">=", self.min), (">", self.above), ("<=", self.max), ("<", self.below),
            )
            if math.isfinite(bound)
        ]  # fmt: skip
        return f"a number {' and '.join(bounds)}".strip()

    def read(self, text: str) -> float:
        """The value of a text.

        Raises:
          ValueError: it is no number, or out of bounds.
        """
        value = float(text)
        inside = self.min <= value <= self.max and self.above < value < self.below
        if not inside or (value and not _LEAST <= abs(value) <= _MOST):
            raise ValueError(text)
        return value


@dataclasses.dataclass(frozen=True)
class Choice:
    """A word that a defense takes; it is static.

    Attributes:
      name: keyword in text and of `build`.
      meaning: what is chosen.
      choices: the words; the first is the default.
    """

    name: str
    meaning: str
    choices: tuple[str, ...]
    required = False

    @property
    def default(self) -> str:
        return self.choices[0]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.choices)}"

    def read(self, text: str) -> str:
        """The word itself.

        Raises:
          ValueError: it is not among the choices.
        """
        if text not in self.choices:
            raise ValueError(text)
        return text


Parameter = Number | Choice


class Setting(NamedTuple):
    """What a defense must know of the training; numbers may be traced.

    Attributes:
      loss_fn: of one example.
      num_layers: arrays of parameters, M.
      num_rounds: of the run, over which a clip decays; None: a clip cannot.
      batches: how a client's batches are made.
      sampling_rate: [] or `[C]` of each of its rows into a batch.
      batch_size: [] or `[C]` expected rows of a batch.
      drawn: how clients come into rounds.
      participation: [] rate of each of them.
      num_summed: [] messages in a sum, whose noise an observer of sums alone meets.
    """

    loss_fn: losses.LossFn
    num_layers: int
    num_rounds: int | None = None
    batches: Sampling = "fixed"
    sampling_rate: Array | float = 1.0
    batch_size: Array | float = 1.0
    drawn: Sampling = "all"
    participation: Array | float = 1.0
    num_summed: Array | int = 1

    @classmethod
    def of_clients(
        cls,
        loss_fn: losses.LossFn,
        num_layers: int,
        sizes: Array | int,
        batch_size: int | None,
        *,
        poisson: bool,
        drop_last: bool = False,
        **more: Any,
    ) -> "Setting":
        """Of clients who make mini-batches of their rows.

        Args:
          loss_fn: as above, as is what comes behind `drop_last`.
          num_layers: likewise.
          sizes: [] or `[C]` rows of a client.
          batch_size: rows of a mini-batch; None takes all.
          poisson: whether each row comes into a batch for itself.
          drop_last: whether rows behind the last full batch of a pass are left out; else
            they are a smaller one.
        """
        sizes = np.asarray(sizes)
        rate = packing.sampling_rate(sizes, batch_size, drop_last)
        rows = np.minimum(batch_size or sizes, sizes)
        return cls(
            loss_fn,
            num_layers,
            batches="poisson" if poisson else "fixed",
            sampling_rate=rate,
            batch_size=sizes * rate if poisson else rows,
            **more,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Definition:
    """What a defense takes, where it acts, what it promises, and how it is built.

    Attributes:
      build: `(setting, **values) -> Defense`, pure; a keyword for every parameter but
        those of a budget, which arrive as `sigma`. Numbers may be traced.
      parameters: in the order in which they are printed.
      acts: where, in words: local steps, messages, server.
      promise: why it promises nothing; empty where its `NoiseSpec` promises something.
      poisson: whether it needs batches that are Poisson samples; `(choice, word)` where
        only that word does.
      clips_examples: whether it clips examples one by one (`clipping.clipped_sum`), and so
        leaves out those whose gradient has no finite norm.
      effects: `(**values) -> Effects`, what it does as data, for an adversary who knows it;
        of the same keywords as `build`, with None for a sigma that is left to a budget.
        None: no adversary can simulate it.
    """

    build: Callable[..., Defense]
    parameters: tuple[Parameter, ...]
    acts: str
    promise: str = ""
    poisson: bool | tuple[str, str] = False
    clips_examples: bool = False
    effects: Callable[..., Effects] | None = None

    def __post_init__(self):
        """Refuses what cannot be built.

        Raises:
          TypeError: parameters are none, or `build` does not take them.
        """
        told = self.parameters
        if not (
            isinstance(told, tuple) and all(isinstance(p, Parameter) for p in told)
        ):
            raise TypeError(
                f"parameters: expected a tuple of Number or Choice, got {told}"
            )
        given = [each.name for each in told if each.name not in BUDGET]
        _check_call("build", self.build, ("setting",), given)
        if self.effects is not None:
            _check_call("effects", self.effects, (), given)

    def parameter(self, name: str) -> Parameter | None:
        return next((each for each in self.parameters if each.name == name), None)


def check_built(known: Definition, built: object) -> None:
    """What `build` made, before it is used in a training.

    Raises:
      TypeError: it is no `Defense`, or one whose functions do not take what they are
        given, or promises something that nobody can account for.
    """
    if not isinstance(built, Defense):
        raise TypeError(
            f"expected build to return a Defense, got {type(built).__name__}"
        )
    sender = ("key", "delta", "sender")
    called = ("key", "params", "batch"), sender, sender
    for name, given in zip(("gradient", "encode", "receive"), called, strict=True):
        call = getattr(built, name)
        if call is not None:
            _check_call(name, call, given, ())
    if not built.noise and not known.promise:
        raise TypeError(
            "expected a NoiseSpec in its noise, or a promise that says why there is none"
        )


def _check_call(what: str, call: Callable, before: tuple[str, ...], keywords) -> None:
    try:
        inspect.signature(call).bind(*before, **dict.fromkeys(keywords))
    except TypeError as error:
        expected = ", ".join([*before, *keywords])
        raise TypeError(
            f"{what}: expected to be called with {expected}: {error}"
        ) from error


# For what is clipped to a norm and has Gaussian noise in proportion to it. Its noise is
# said as sigma, or as a budget that sigma is chosen for.
CLIP = Number("clip", "clip C, an L2 norm", min=LEAST_CLIP)
DECAY = Number(
    "decay_to",
    "clip in the last round, linear from C in the first",
    optional=True,
    min=LEAST_CLIP,
)
SIGMA = Number(
    "sigma",
    "standard deviation of one draw of noise over C",
    optional=True,
    min=0,
)
EPSILON = Number(
    "epsilon",
    "budget in place of sigma, over all rounds at the run's delta",
    optional=True,
    above=0,
)
ACCOUNTANT = Choice("accountant", "turns epsilon into sigma", ("rdp", "pld"))
BUDGET = (EPSILON.name, ACCOUNTANT.name)
CLIPPED_AND_NOISY = (CLIP, DECAY, SIGMA, EPSILON, ACCOUNTANT)
ON = Choice(
    "on", "the message, or each local step's mean gradient", ("messages", "steps")
)
