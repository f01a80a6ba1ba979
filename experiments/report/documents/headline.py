"""The one small table: what each adversary reads of two federations."""

from typing import NamedTuple

from experiments.report import kept
from experiments.report import lines as lines_lib
from experiments.report.cards import Judged
from experiments.report.documents import writing
from fljax.driver.config import ConfigError
from fljax.results import within

_MEDICAL, _DIABETES = "aia.table1.medical", "aia.diabetes.mlp.adversaries"
_STRANGERS = "trajectory_strangers"


class _Adversary(NamedTuple):
    said: str
    attack: str
    setting: str


_ADVERSARIES = (
    _Adversary("guesses the most frequent value", "majority", "baseline"),
    _Adversary("imputes it from the other columns", "imputation", "baseline"),
    _Adversary("model-based, on the last message", "model", "passive"),
    _Adversary("the same as an active server, 50 rounds", "model", "active_50"),
    _Adversary("linear inversion, on all messages (ours)", "linear_inversion", "passive"),
    _Adversary("**trajectory matching**, on all messages (ours)", "trajectory", "passive"),
    _Adversary("the same on strangers' rows", _STRANGERS, "passive"),
)  # fmt: skip


def text() -> str:
    """Share of rows on which each adversary names the right value."""
    medical, diabetes = (_found(name) for name in (_MEDICAL, _DIABETES))
    body = [
        [who.said, *(_shown(found[who[1:]]) for found in (medical, diabetes)),
         _published(medical[who[1:]])]
        for who in _ADVERSARIES
    ]  # fmt: skip
    header = [
        f"adversary, accuracy in %, mean of {_seeds(_MEDICAL)} seeds [95 % interval]",
        "Medical: smokers", "diabetes: sex", "Medical, published",
    ]  # fmt: skip
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _found(name: str) -> dict[tuple[str, str], Judged | lines_lib.Summary]:
    """Attack and setting -> its accuracy in one result."""
    card = kept.shown(name)
    found: dict = {
        (each.line.row.attack, each.line.row.setting): each
        for each in card.judged
        if each.line.row.metric == lines_lib.ACCURACY
    }
    for s in lines_lib.summarise(card.rows):
        at = s.row.attack, s.row.setting
        if s.row.metric == lines_lib.ACCURACY and s.row.client == "all":
            found.setdefault(at, s)
    missing = [who for who in _ADVERSARIES if who[1:] not in found]
    if missing:
        raise ConfigError(f"headline: {name} has no {' '.join(missing[0][1:])}")
    return found


def _shown(each) -> str:
    if isinstance(each, Judged):
        return writing.plain(each.line.shown)
    return writing.plain(within(each.estimate, each.row.metric))


def _published(each) -> str:
    number = each.number if isinstance(each, Judged) else None
    return "" if number is None else str(number)


def _seeds(name: str) -> int:
    return len({row.seed for row in kept.read(name).rows})
