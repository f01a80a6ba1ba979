"""By which power of a flag errors grow, beside those of Theorem 1's rate and bound."""

from experiments.report import kept
from experiments.report.documents import writing
from fljax.results import summarise

_DISTANCE = "optimum_distance_slope"
_OF_THEOREM = {"rate_slope": "eq. (6)", "bound_slope": "eq. (18)"}
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
            told = [found[steps, flag, "theorem1", each] for each in _OF_THEOREM]
            numbers = [writing.plain(each, 2) for each in (error, *told)]
            body.append([steps, flag, _WORDS[attack], *numbers, str(error.repetitions)])
    header = ["steps", "power of", "estimator", "error", *_OF_THEOREM.values(), "seeds"]
    return writing.table(header, body, header[3:])
