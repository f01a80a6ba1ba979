"""The one small table: what each adversary reads of two federations."""

from typing import NamedTuple

from experiments.report import kept
from experiments.report.documents import writing
from experiments.report.figures.selection import ACCURACY

_MEDICAL, _DIABETES = "aia.table1.medical", "aia.diabetes.mlp.adversaries"
_SUMS = "aia.sums.medical.two", "aia.sums.diabetes"


class _Place(NamedTuple):
    """Where a number is kept."""

    result: str
    setting: str


class _Adversary(NamedTuple):
    said: str
    attack: str
    medical: _Place
    diabetes: _Place


def _passive(said: str, attack: str, setting: str = "passive") -> _Adversary:
    return _Adversary(
        said, attack, _Place(_MEDICAL, setting), _Place(_DIABETES, setting)
    )


_ADVERSARIES = (
    _passive("guesses the most frequent value", "majority", "baseline"),
    _passive("imputes it from the other columns", "imputation", "baseline"),
    _passive("model-based, on the last message", "model"),
    _passive("the same as an active server, 50 rounds", "model", "active_50"),
    _passive("linear inversion, on all messages (ours)", "linear_inversion"),
    _passive("**trajectory matching**, on all messages (ours)", "trajectory"),
    _Adversary("the same, on sums (2; 4 clients)", "trajectory",
               _Place(_SUMS[0], "sum"), _Place(_SUMS[1], "sum_of_4")),
    _passive("trajectory matching, on strangers' rows", "trajectory_strangers"),
)  # fmt: skip


def text() -> str:
    """Share of rows on which each adversary names the right value."""
    body = []
    for who in _ADVERSARIES:
        shown = (
            writing.plain(kept.accuracy(place.result, who.attack, place.setting))
            for place in who[2:]
        )
        body.append([who.said, *shown, _published(who)])
    header = [
        f"adversary, accuracy in %, mean of {_seeds(_MEDICAL)} seeds [95 % interval]",
        "Medical: smokers", "diabetes: sex", "Medical, published",
    ]  # fmt: skip
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _published(who: _Adversary) -> str:
    """Of Medical, where the paper has a number of this adversary."""
    reference = kept.shown(who.medical.result).reference
    numbers = {} if reference is None else reference.numbers
    return str(numbers.get((who.medical.setting, who.attack, ACCURACY), ""))


def _seeds(name: str) -> int:
    return len({row.seed for row in kept.read(name).rows})
