"""Result rows, and the table on the screen."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from experiments import epsilons
from experiments.epsilons import PREFIX
from experiments.membership.coins import Pool
from experiments.membership.scores import Rates
from experiments.membership.settings import Settings
from experiments.membership.trainings import Trained, row_losses
from fljax import certainty, data, fit, privacy
from fljax.defenses.specs import Spec
from fljax.driver import screen_tables
from fljax.privacy import Promise
from fljax.results import Labels, Row, summarise

AUC, FOUND = "membership_auc", certainty.FOUND
BY_CHANCE = certainty.FOUND_BY_CHANCE


def labels(settings: Settings, table: data.Table, spec: Spec) -> Labels:
    """Of one defense."""
    about = table.name, settings.model.name, str(spec)
    return Labels("membership", *about, f"defense={spec}")


def rows(
    labels: Labels, rates: Mapping[tuple[str, str], Rates], seed: int, count: int
) -> list[Row]:
    """Of every attack and observer."""
    return [
        labels.row(attack, observer, seed, metric, value, count)
        for (attack, observer), each in rates.items()
        for metric, value in (
            (AUC, each.auc),
            (FOUND, each.found),
            (BY_CHANCE, each.by_chance),
        )
    ]


def described(
    labels: Labels,
    settings: Settings,
    trained: Trained,
    table: data.Table,
    pool: Pool,
    there: np.ndarray,
    seed: int,
) -> list[Row]:
    """How much the models explain of members and of others, and epsilons.

    Those of noise that holds against who attacks.
    """
    found = []
    last = f"round_{settings.train.num_rounds}"
    everyone = np.ones((len(there), len(pool.population.y)), bool)
    for name, rows_, mask in (
        ("train", pool.rows, there),
        ("test", pool.population, everyone),
    ):
        loss = row_losses(trained, trained.last, rows_)
        mean = np.where(mask, loss, 0).sum(axis=1) / mask.sum(axis=1)
        y = np.broadcast_to(np.asarray(rows_.y), mask.shape)
        explained = fit.explained(mean, y, mask, table.task)
        for metric, values in (("loss", mean), (fit.METRIC, explained)):
            about = "none", last, seed, f"{name}_{metric}"
            found.append(labels.row(*about, float(np.mean(values)), mask.sum()))
    for promise in promises(settings, trained):
        metric = f"{PREFIX[promise.noise.unit]}epsilon_rdp"
        value = promise.guarantee.epsilon_rdp.max()
        found.append(labels.row("none", "defense", seed, metric, value, there.size))
    return found


def promises(settings: Settings, trained: Trained) -> list[Promise]:
    """Of noise that holds against who attacks."""
    bound = trained.problem.bound_defense
    if bound is None:
        return []
    made = bound.build(bound.of_seed(0))
    promised = privacy.promises(made, bound.releases(0), bound.delta)
    return [*privacy.against(promised, settings.run.observers).values()]


def tables(rows: Sequence[Row]) -> list[Table | Text]:
    """A line for each defense, observer and attack."""
    table = screen_tables.empty("membership: members told from others")
    table.add_column("defense")
    screen_tables.add_texts(table, "observer", "attack")
    screen_tables.add_numbers(table, "AUC", "found at FPR 0.001, %", "by chance, %")
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    promised = {at[0]: f", epsilon {e.text}" for at, e in epsilons.stated(rows).items()}
    for s in summarise(rows):
        at = s.row.defense, s.row.setting, s.row.attack
        if s.row.metric in (AUC, FOUND, BY_CHANCE):
            form = ".3f" if s.row.metric == AUC else ".2f"
            shown = screen_tables.interval(s.shown, form)
            if s.row.metric == BY_CHANCE:  # which no training changes
                shown = f"{s.shown.mean:{form}}"
            found.setdefault(at, {})[s.row.metric] = shown
    before = ""
    for (defense, *words), each in found.items():
        name = "" if defense == before else defense + promised.get(defense, "")
        table.add_row(Text(name), *words, each[AUC], each[FOUND], each[BY_CHANCE])
        before = defense
    return [table]
