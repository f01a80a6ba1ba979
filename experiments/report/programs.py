"""Every program that has a place in the report: the one list of them."""

from collections.abc import Iterable

from experiments.accounting.report import REPORT as ACCOUNTING
from experiments.aia.report import REPORT as AIA
from experiments.choose_defense.report import REPORT as CHOOSE_DEFENSE
from experiments.epsilon_audit.report import REPORT as EPSILON_AUDIT
from experiments.fed_cdp.report import REPORT as FED_CDP
from experiments.gradient_leakage.report import REPORT as GRADIENT_LEAKAGE
from experiments.label_distribution.report import REPORT as LABEL_DISTRIBUTION
from experiments.lmra.report import REPORT as LMRA
from experiments.membership.report import REPORT as MEMBERSHIP
from experiments.report.audited import REPORT as AUDIT
from experiments.report.program_report import ProgramReport
from experiments.rows.report import REPORT as ROWS
from experiments.rows_of_sums.report import REPORT as ROWS_OF_SUMS
from experiments.theory.report import REPORT as THEORY
from fljax.results import Row

_ALL = (
    AIA, ACCOUNTING, FED_CDP, GRADIENT_LEAKAGE, LABEL_DISTRIBUTION, AUDIT, LMRA, THEORY,
    CHOOSE_DEFENSE, MEMBERSHIP, EPSILON_AUDIT, ROWS, ROWS_OF_SUMS,
)  # fmt: skip
PROGRAMS = {each.name: each for each in _ALL}
_SEVERAL = "What federated training leaks, and what is promised"


def of(rows: Iterable[Row]) -> list[ProgramReport]:
    """The programs that rows are of, in the order of the list."""
    names = {row.experiment for row in rows}
    return [each for each in _ALL if each.name in names]


def title(found: list[ProgramReport]) -> str:
    """Of a report on these programs."""
    return found[0].title if len(found) == 1 else _SEVERAL


def terms(found: list[ProgramReport], rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Names of attacks, then settings, in the rows of each program with what they mean.

    What several programs mean differently is told of each.
    """
    attacks: dict[str, dict[str, None]] = {}
    settings: dict[str, dict[str, None]] = {}
    pairs = {(row.experiment, row.attack, row.setting) for row in rows}
    for each in found:
        own = [pair[1:] for pair in pairs if pair[0] == each.name]
        for name, text in each.names.items():
            if any(attack == name for attack, _ in own):
                attacks.setdefault(name, {})[text] = None
        for name, text in each.settings.items():
            if any(setting.startswith(name) for _, setting in own):
                shown = f"{name}k" if name.endswith("_") else name
                settings.setdefault(shown, {})[text] = None
    told = [*attacks.items(), *settings.items()]
    return [(name, "; ".join(texts)) for name, texts in told]
