"""What the numbers of an audit look like, and its table as HTML, for a page and a notebook."""

from collections.abc import Sequence
from typing import Any

import jinja2
import numpy as np

from fljax import verdicts
from fljax.auditing.lines import Line, Number

METRICS = {
    verdicts.ACCURACY.metric: "accuracy %",
    verdicts.ERROR.metric: "mean abs. error",
    verdicts.DISTANCE.metric: "total variation",
    verdicts.REBUILT.metric: "rebuilt rows %",
}
_COLOURS = {verdicts.LEAKS: "bad"}


def number(value: Number | None) -> str:
    """`value [low, high]`; empty without one."""
    if value is None:
        return ""
    if not np.isfinite(value.low):
        return f"{value.value:.4g}"
    low = max(value.low, 0)  # no measure of an audit is negative
    return f"{value.value:.2f} [{low:.2f}, {value.high:.2f}]"


def reference(value: Number | None, name: str | None = None) -> str:
    """What is reached without messages of these rows; empty where it was not measured.

    Args:
      value: of an attack.
      name: of the reference; None for the first, majority or the like.
    """
    if value is None or (name is not None and name not in value.references):
        return ""
    found = value.baseline if name is None else value.references[name]
    return f"{found:.4g}"


def have_others(lines: Sequence[Line]) -> bool:
    """Whether any was compared with the messages of others."""
    totals = [line.total for line in lines if line.total is not None]
    return any(verdicts.OTHERS in total.references for total in totals)


def ceiling(line: Line) -> str:
    """What no adversary is above; empty where nothing is promised."""
    return "" if line.ceiling is None else f"{line.ceiling:.4g}"


def html(lines: Sequence[Line]) -> str:
    """The table alone, for a notebook."""
    return template("table.html.j2").render(table(lines))


def table(lines: Sequence[Line]) -> dict[str, Any]:
    """What `table.html.j2` shows."""
    return {
        "lines": [_shown(line) for line in lines],
        "have_others": have_others(lines),
        "capped": any(line.ceiling is not None for line in lines),
        "several_settings": len({line.setting for line in lines if line.setting}) > 1,
    }


def template(name: str) -> jinja2.Template:
    """One of the package's files; texts are escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fljax.auditing", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name)


def _shown(line: Line) -> dict[str, str]:
    return {
        "attack": line.attack,
        "verdict": line.verdict,
        "colour": _COLOURS.get(line.verdict, "open"),
        "value": number(line.total),
        "majority": reference(line.total),
        "imputation": reference(line.total, verdicts.IMPUTATION),
        "strangers": reference(line.total, verdicts.STRANGERS),
        "others": reference(line.total, verdicts.OTHERS),
        "ceiling": ceiling(line),
        "metric": METRICS.get(line.metric, ""),
        "setting": line.setting,
        "detail": line.detail,
    }
