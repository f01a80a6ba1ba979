"""One kept result: what was run, and its scores beside the published numbers."""

from experiments.report import commands, gains, kept, markdown, tables
from experiments.report.cards import Card, Judged
from experiments.report.documents import wide, writing
from experiments.report.programs import PROGRAMS

_PARTS = "accuracy_of_"  # of columns that are inferred together
# What papers' figures show beside what an attack is judged by: how the names of their
# flagfiles begin -> metrics.
_FIGURES = {
    "aia.toy.linear": {"optimum_distance"},
    "lmra.table1": {
        "gain_over_last_returned_points",
        "gain_over_majority_points",
        "gain_of_least_alike_over_others_points",
        "most_local_steps_over_fewest_points",
        "clients_explained_percent",
        "members_explaining_percent",
        "members_agree_percent",
        "accuracy_beside_members_percent",
    },
    "lmra.fig": {"test_accuracy_percent", "mapping_loss"},
    "label_distribution.fig": {
        "accuracy_percent",
        "silhouette",
        "silhouette_vehicles",
        "nearest_centroid_percent",
        "distance_of_similar_labels",
    },
    "fed_cdp.fig": {"accuracy_percent", "gradient_norm"},
    "fed_cdp.committed.pruning": {"accuracy_percent"},
    "fed_cdp.propositions": {
        "accuracy_percent",
        "margin",
        "lipschitz",
        "noise_bound",
        "turned_within_bound_percent",
        "noise_of_a_step",
        "noisy_accuracy_percent",
        "total_variation",
    },
    "gradient_leakage.fig": {"reconstruction_distance", "ssim", "label_accuracy"},
    **{
        f"gradient_leakage.{data}": {"distance_cut_to_range"}
        for data in ("digits", "mnist", "lfw")
    },
    "gradient_leakage.mnist.noise": {"attack_success", "label_accuracy", "ssim"},
}


def text(name: str) -> str:
    """A result with its command.

    Of a flagfile without one: why it has none, then the results that it has with more
    flags, else its command.

    Args:
      name: of the result or the flagfile.

    Raises:
      ConfigError: there is neither.
    """
    reason = kept.reasons().get(name)
    if reason is None:
        return _of_card(kept.shown(name))
    told = [_of_card(kept.shown(n)) for n in kept.names() if n.startswith(f"{name}.")]
    if not told:
        told.append(writing.command(commands.of_flagfile(name)))
    about = f"There is no result of `{name}.flags` as it stands."
    return "\n\n".join([f"{about} {markdown.escape(reason)}", *told])


def _of_card(card: Card) -> str:
    """Command, scores, what its defense promises, and by what it was made."""
    told, command = _told(card), writing.command(card.manifest["command"])
    if PROGRAMS[card.manifest["experiment"]].wide:
        return "\n\n".join([command, wide.text(told), _made(card)])
    scores, others = tables.results(card._replace(judged=told or card.judged))
    both = (scores, others) if told else (scores or others,)
    found = [each for each in (*both, tables.defense(card)) if each]
    shown = [
        writing.folded(writing.table(t.header, t.body, t.numbers), "measured numbers")
        for t in found
    ]
    return "\n\n".join([command, *shown, _made(card)])


def _told(card: Card) -> list[Judged]:
    """What is measured as published numbers are, or by what an attack is judged.

    Baselines stand in columns of their own, those of a figure's pictures below.
    """
    program = PROGRAMS[card.manifest["experiment"]]
    metrics = {gain.measure.metric for gain in program.gains}
    metrics |= {each.line.row.metric for each in card.compared}
    shown = {m for at in _FIGURES if card.name.startswith(at) for m in _FIGURES[at]}
    metrics |= shown
    return [
        _named_once(each)
        for each in card.judged
        if (each.line.row.metric in metrics or each.line.row.metric.startswith(_PARTS))
        and (each.line.row.setting != "baseline" or each.line.row.metric in shown)
        and not _is_of_curve(each.line.row.setting)
        and not each.line.row.point.startswith(gains.PART)
    ]


def _is_of_curve(setting: str) -> bool:
    """Whether imputation is of so many rows, which a figure shows."""
    return setting.removeprefix(gains.CURVE).isdecimal()


def _named_once(each: Judged) -> Judged:
    """Without the point of a sweep over defenses, which have a column."""
    row = each.line.row
    point = "" if row.point == f"defense={row.defense}" else row.point
    return each._replace(line=each.line._replace(row=row._replace(point=point)))


def _made(card: Card) -> str:
    packages = card.manifest["packages"]
    seeds = len(card.manifest["flags"].get("seeds") or [0])
    return (
        f"{seeds} seed{'s' * (seeds > 1)}; fljax {packages['fljax']}, code "
        f"{card.manifest['code']['fljax'][:8]}, jax {packages['jax']}, "
        f"{card.manifest['machine']}."
    )
