"""The picture of the README: what each adversary reads of the diabetes patients.

Drawn from kept results by a template, so that the same numbers give the same bytes.
"""

from typing import Any, NamedTuple

from experiments.report import kept, rendering
from fljax.metrics import Estimate

_BARE, _SUMS = "aia.diabetes.mlp.adversaries", "aia.sums.diabetes"
_NOISE = "dp_sgd(clip=1, epsilon=10)"
_TITLE = "Share of patients whose sex an adversary names, %"
_LEFT, _SCALE, _WIDTH = 330, 3.6, 760  # pixels; a percent is 3.6
_TOP, _STEP = 56, 32
_LEAKS, _QUIET = "#c0504d", "#9bb3c9"


class _Bar(NamedTuple):
    said: str
    result: str
    attack: str
    setting: str
    defense: str
    fill: str


_BARS = (
    _Bar("last message, model-based", _BARE, "model", "passive", "none", _QUIET),
    _Bar("active server, 50 rounds", _BARE, "model", "active_50", "none", _QUIET),
    _Bar("all messages, linear inversion", _BARE, "linear_inversion", "passive",
         "none", _LEAKS),
    _Bar("all messages, trajectory matching", _BARE, "trajectory", "passive", "none",
         _LEAKS),
    _Bar("sums over all four, trajectory matching", _SUMS, "trajectory", "sum_of_4",
         "none", _LEAKS),
    _Bar("all messages, of people who took no part", _BARE, "trajectory_strangers",
         "passive", "none", _QUIET),
    _Bar("all messages, under DP-SGD, epsilon 10", _SUMS, "trajectory", "passive",
         _NOISE, _QUIET),
    _Bar("sums over all four, under DP-SGD", _SUMS, "trajectory", "sum_of_4", _NOISE,
         _QUIET),
)  # fmt: skip


def draw() -> str:
    """The picture as SVG.

    Raises:
      ConfigError: a number of it is not kept.
    """
    measured = [(bar, kept.accuracy(*bar[1:5])) for bar in _BARS]
    guess, imputed = (
        kept.accuracy(_BARE, attack, "baseline")
        for attack in ("majority", "imputation")
    )
    described = [f"{bar.said}: {e.mean:.1f} %" for bar, e in measured]
    return rendering.drawing(
        "leak.svg.j2",
        width=_WIDTH,
        height=_TOP + _STEP * len(_BARS) + 44,
        left=_LEFT,
        end=_x(100) + 10,
        title=_TITLE,
        description="; ".join(
            [f"most frequent value: {guess.mean:.1f} %",
             f"imputation: {imputed.mean:.1f} %", *described]
        ),
        guess={"x": _x(guess.mean), "text": f"most frequent value {guess.mean:.0f}"},
        imputed={"x": _x(imputed.mean), "text": f"imputation {imputed.mean:.0f}"},
        bars=[_drawn(at, bar, e) for at, (bar, e) in enumerate(measured)],
    )  # fmt: skip


def _drawn(at: int, bar: _Bar, e: Estimate) -> dict[str, Any]:
    return {
        "said": bar.said,
        "y": _TOP + _STEP * at,
        "width": round(_SCALE * e.mean, 1),
        "low": _x(e.low),
        "high": _x(e.high),
        "fill": bar.fill,
        "number": f"{e.mean:.1f}",
    }


def _x(percent: float) -> float:
    return round(_LEFT + _SCALE * percent, 1)
