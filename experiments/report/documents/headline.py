"""The one small table: what each adversary reads of two federations."""

from typing import NamedTuple

from experiments.report import kept
from experiments.report import lines as lines_lib
from experiments.report.cards import Judged
from experiments.report.documents import writing
from fljax.driver.config import ConfigError
from fljax.results import Row, within

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
    _Adversary("the same, on sums over all clients", "trajectory",
               _Place(_SUMS[0], "sum"), _Place(_SUMS[1], "sum_of_4")),
    _passive("the same, on strangers' rows", "trajectory_strangers"),
)  # fmt: skip


def text() -> str:
    """Share of rows on which each adversary names the right value."""
    body = []
    for who in _ADVERSARIES:
        medical, diabetes = (_found(place, who.attack) for place in who[2:])
        body.append([who.said, _shown(medical), _shown(diabetes), _published(medical)])
    header = [
        f"adversary, accuracy in %, mean of {_seeds(_MEDICAL)} seeds [95 % interval]",
        "Medical: smokers", "diabetes: sex", "Medical, published",
    ]  # fmt: skip
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _found(place: _Place, attack: str) -> Judged | lines_lib.Summary:
    """An attack's accuracy on all rows, where nothing is done against it."""
    wanted = attack, place.setting, "none", lines_lib.ACCURACY
    card = kept.shown(place.result)
    for each in card.judged:
        if _about(each.line.row) == wanted:
            return each
    for s in lines_lib.summarise(card.rows):
        if _about(s.row) == wanted and s.row.client == "all":
            return s
    raise ConfigError(f"headline: {place.result} has no {attack} ({place.setting})")


def _about(row: Row) -> tuple[str, ...]:
    return row.attack, row.setting, row.defense, row.metric


def _shown(each) -> str:
    if isinstance(each, Judged):
        return writing.plain(each.line.shown)
    return writing.plain(within(each.estimate, each.row.metric))


def _published(each) -> str:
    number = each.number if isinstance(each, Judged) else None
    return "" if number is None else str(number)


def _seeds(name: str) -> int:
    return len({row.seed for row in kept.read(name).rows})
