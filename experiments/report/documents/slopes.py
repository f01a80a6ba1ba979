"""By which power of a flag errors grow, beside that of the bound of Theorem 1."""

from experiments.report import kept
from experiments.report.documents import writing
from fljax.results import summarise

_DISTANCE, _BOUND = "optimum_distance_slope", "bound_slope"
_WORDS = {
    "reconstruct": "Algorithm 2",
    "reconstruct_forward": "the regression reversed (ours)",
}


def text(name: str) -> str:
    """A line for each flag and estimator of a kept result of `experiments.theory`."""
    found = {
        (s.row.setting, s.row.point, s.row.attack, s.row.metric): s.shown
        for s in summarise(kept.read(name).rows)
    }
    body = []
    for (steps, flag, attack, metric), error in found.items():
        if metric == _DISTANCE and attack in _WORDS:
            told = error, found[steps, flag, "theorem1", _BOUND]
            numbers = [writing.plain(each, 2) for each in told]
            body.append([steps, flag, _WORDS[attack], *numbers, str(error.repetitions)])
    header = ["steps", "power of", "estimator", "error", "bound", "seeds"]
    return writing.table(header, body, header[3:])
