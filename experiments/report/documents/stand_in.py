"""Table 1 of Diana et al. (2025) for Income-L, beside its setting on other rows.

The census file of Income-L could not be had. PUMS 2016 stands in for it, in results that
were made for figures of this setting: nothing is comparable, and the order of attacks is.
"""

from experiments.report import kept, published
from experiments.report.documents import writing
from fljax import metrics
from fljax.results import Row

_RESULTS = (  # the first that has an attack's numbers
    "aia.fig6",
    "aia.table1.pums2016.gradients",
    "aia.fig6.gradients.whole",
    "aia.fig3.oracle",
)
_POINTS = ("", "partition_heterogeneity=0.4")  # the table's


def text() -> str:
    """A line for each number that is printed."""
    body = []
    for line in published.stored("diana2025"):
        if (line["table"], line["dataset"]) != ("table1", "income_l"):
            continue
        rows = _rows(line["method"], line["setting"], line["metric"])
        found = metrics.interval([row.value for row in rows])
        ours = writing.plain(found) if found.repetitions > 1 else f"{found.mean:.2f}"
        printed = f"{float(line['value']):.2f} ± {float(line['std']):.2f}"
        seeds = f"{len(rows)} x {rows[0].n}"
        body.append([line["method"], line["setting"], ours, printed, seeds])
    header = ["attack", "setting", "PUMS 2016, mean [95 %]", "Income-L, published"]
    header.append("seeds x rows")
    return writing.table(header, body, header[2:])


def _rows(attack: str, setting: str, metric: str) -> list[Row]:
    """Of all seeds, in the setting of the table."""
    for name in _RESULTS:
        rows = [
            row
            for row in kept.read(name).rows
            if (row.attack, row.setting, row.metric) == (attack, setting, metric)
            and row.client == "all"
            and row.point in _POINTS
        ]
        if rows:
            return rows
    raise LookupError(f"{attack} {setting}: in none of {', '.join(_RESULTS)}")
