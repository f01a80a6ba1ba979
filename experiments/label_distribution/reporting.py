"""What a run leaves behind: rows, and tables for the screen."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.table import Table

from experiments import defense_options, epsilons
from experiments.label_distribution import scores
from experiments.label_distribution.attacking import SETTINGS
from experiments.label_distribution.clusters import Cloud
from experiments.label_distribution.fedavg import Curve
from experiments.label_distribution.scores import Attacked
from experiments.label_distribution.task import Task
from fljax import results
from fljax.defenses.specs import Spec
from fljax.driver import screen_tables
from fljax.metrics import Estimate
from fljax.privacy import Promise
from fljax.results import HALF_WIDTH, Labels, Row, summarise

EXPERIMENT = "label_distribution"
ACCURACY = "accuracy_percent"
FEDAVG = "fedavg"
EXAMPLE, TRUE, SHARE = "example", "true", "share_percent"
_ALPHA = "alpha="


class Case(NamedTuple):
    """One defense.

    Attributes:
      spec: which.
      attacked: seed -> what was predicted of its clients, beside the truth.
      curves: one per trial of FedAvg; none where it was not trained.
      promises: epsilons; none where nothing is promised.
    """

    spec: Spec
    attacked: dict[int, Attacked]
    curves: Sequence[Curve]
    promises: Sequence[Promise]


def rows(task: Task, case: Case, eval_rows: int) -> list[Row]:
    """Every number of one defense."""
    found = []
    labels = Labels(EXPERIMENT, task.name, task.model_name, str(case.spec))

    def keep(attack, setting, seed, metric, value, count, alpha=""):
        at = labels._replace(point=alpha)
        found.append(at.row(attack, setting, seed, metric, value, count))

    for seed, (predicted, truth, alphas) in case.attacked.items():
        for attack, each in predicted.items():
            where = attack, SETTINGS[attack], seed
            for alpha, chosen in _groups(alphas):
                for metric, e in scores.over_clients(each[chosen], truth[chosen]):
                    count, half = e.repetitions, e.high - e.mean
                    keep(*where, metric, e.mean, count, alpha)
                    keep(*where, metric + HALF_WIDTH, half, count, alpha)
    for trial, curve in enumerate(case.curves):
        for done, value in zip(curve.rounds, curve.accuracy, strict=True):
            keep(FEDAVG, f"round_{done}", trial, "test_" + ACCURACY, value, eval_rows)
        keep(FEDAVG, "final", trial, ACCURACY, curve.accuracy[-1], eval_rows)
    name = defense_options.short_name(case.spec)
    for promise in case.promises:
        value = float(np.max(promise.guarantee.epsilon_pld))
        metric = f"{epsilons.PREFIX[promise.noise.unit]}epsilon_pld"
        keep(name, "defense", 0, metric, value, 1)
    return found


def examples(alphas: np.ndarray) -> dict[str, int]:
    """Each concentration as a point -> the first client of it, as they were drawn."""
    values, first = np.unique(alphas, return_index=True)
    named = zip(values, first, strict=True)
    return {f"{_ALPHA}{alpha:g}": int(at) for alpha, at in named}


def example_rows(task: Task, spec: Spec, seed: int, found: Attacked) -> list[Row]:
    """Figure 5 as numbers: labels of one client of each concentration, true and predicted."""
    labels = Labels(EXPERIMENT, task.name, task.model_name, str(spec))
    told = {TRUE: found.truth} | found.predicted
    return [
        labels._replace(point=f"{alpha};label={name}").row(
            attack, EXAMPLE, seed, SHARE, 100 * float(share), 1
        )
        for alpha, client in examples(found.alphas).items()
        for attack, shares in told.items()
        for name, share in zip(task.classes, shares[client], strict=True)
    ]


def _groups(alphas: np.ndarray):
    """All clients, and those of each concentration."""
    yield "", np.ones(len(alphas), bool)
    for alpha in np.unique(alphas):
        yield f"{_ALPHA}{alpha:g}", alphas == alpha


def variant(row: Row) -> str:
    """Defense and concentration of a row, empty for all clients without a defense."""
    defense = "" if row.defense == "none" else row.defense
    return ";".join(filter(None, [defense, row.point]))


def cloud_rows(
    task: Task, cloud: Cloud, measured: dict[str, tuple[float, float]]
) -> list[Row]:
    """The measures of one cloud and of shuffled labels."""
    found = []
    for metric, (value, chance) in measured.items():
        for attack, number in (("pca", value), ("shuffled_labels", chance)):
            setting = "baseline" if attack != "pca" else "clusters"
            point = f"{cloud.kind};layer={cloud.layer}"
            labels = Labels(EXPERIMENT, task.name, task.model_name, point=point)
            where = attack, setting, cloud.seed, metric
            found.append(labels.row(*where, number, len(cloud.points)))
    return found


def estimates(found: Sequence[Row]) -> dict[tuple[str, str, str, str], Estimate]:
    """`(variant, attack, setting, metric)` -> mean and interval.

    Over the seeds where there are several, else over the clients of the only one.
    """
    kept = {_key(s.row): s.estimate for s in summarise(found)}
    for key, e in kept.items():
        half = kept.get((*key[:3], key[3] + HALF_WIDTH))
        if math.isnan(e.low) and half is not None:
            kept[key] = e._replace(low=e.mean - half.mean, high=e.mean + half.mean)
    return {key: results.within(e, key[3]) for key, e in kept.items()}


def tables(found: Sequence[Row]) -> list[Table]:
    """Leakage and utility of every defense; then distance by concentration."""
    found = [row for row in found if row.setting != EXAMPLE]
    known = estimates(found)
    if any(row.attack == "pca" for row in found):
        return [_clouds(found)]
    return [_overall(found, known), _by_alpha(found, known)]


def _overall(found, known) -> Table:
    shown = screen_tables.empty("leakage and utility, mean [95 %]")
    screen_tables.add_texts(shown, "defense", "attack")
    screen_tables.add_numbers(
        shown, "total variation", "KL", "cross-\nentropy", "dominant\nlabel %",
        "accuracy %", "epsilon",
    )  # fmt: skip
    promised = {at[0]: e.text for at, e in epsilons.stated(found).items()}
    for point, attack in _pairs(found):
        where = point, attack, SETTINGS[attack]
        accuracy = known.get((point, FEDAVG, "final", ACCURACY))
        shown.add_row(
            point or "none",
            attack,
            screen_tables.interval(known[*where, "total_variation"], ".4f"),
            _number(known[*where, "kl_divergence"], 3),
            _number(known[*where, "cross_entropy"], 3),
            _number(known[*where, "dominant_label_percent"], 1),
            "" if accuracy is None else screen_tables.interval(accuracy, ".1f"),
            promised.get(point, ""),
        )
    return shown


def _by_alpha(found, known) -> Table:
    texts = dict.fromkeys(_split(variant(row))[1] for row in found)
    texts.pop("")
    shown = screen_tables.empty(
        "total variation by alpha, mean and half its 95 % interval"
    )
    screen_tables.add_texts(shown, "defense", "attack")
    screen_tables.add_numbers(shown, *texts)
    for point, attack in _pairs(found):
        where = attack, SETTINGS[attack], "total_variation"
        at = [";".join(filter(None, [point, text])) for text in texts]
        cells = [_give_or_take(known[each, *where]) for each in at]
        shown.add_row(point or "none", attack, *cells)
    return shown


def _clouds(found) -> Table:
    shown = screen_tables.empty(
        "two components of clients' messages, beside shuffled labels"
    )
    screen_tables.add_texts(shown, "clients", "layer", "metric")
    screen_tables.add_numbers(shown, "value", "shuffled")
    means = {_key(s.row): s.estimate for s in summarise(found)}
    for (point, attack, _, metric), e in means.items():
        if attack == "pca":
            kind, _, layer = point.partition(";layer=")
            chance = means[point, "shuffled_labels", "baseline", metric]
            value = screen_tables.interval(e, ".2f")
            shown.add_row(kind, layer, metric, value, _number(chance, 2))
    return shown


def _pairs(found) -> list[tuple[str, str]]:
    pairs = ((variant(r), r.attack) for r in found if r.attack in SETTINGS)
    return [pair for pair in dict.fromkeys(pairs) if not _split(pair[0])[1]]


def _split(point: str) -> tuple[str, str]:
    """Defense and concentration of a point, either of which may be empty."""
    defense, _, alpha = f";{point}".rpartition(f";{_ALPHA}")
    return (defense[1:], _ALPHA + alpha) if _ALPHA in point else (point, "")


def _key(row: Row) -> tuple[str, str, str, str]:
    return variant(row), row.attack, row.setting, row.metric


def _give_or_take(e: Estimate) -> str:
    half = "" if math.isnan(e.low) else f" ± {e.high - e.mean:.3f}"
    return f"{e.mean:.3f}{half}"


def _number(e: Estimate, digits: int) -> str:
    return f"{e.mean:.{digits}f}"
