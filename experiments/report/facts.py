"""What a manifest tells about a run: data, training, defense, time, versions, flags.

A manifest may come from anyone: whatever has another form than expected is shown as it
is or left out.
"""

import itertools
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from experiments.report.cards import Card
from experiments.report.tables import Table, table
from fljax.driver.option import FILES, PLACES
from fljax.results import Row

_DEEPEST, _MOST, _INLINE = 4, 400, 3
_LONGEST = 1000
_ASSUMPTION = "assumption"
_UNKNOWN = "attacks_do_not_know"
_TRAINING = (
    ("algorithm", "{}"),
    ("partition_clients", "{} clients"),
    ("partition_kind", "rows dealt {}"),
    ("partition_heterogeneity", "heterogeneity {}"),
    ("num_rounds", "{} rounds"),
    ("local_epochs", "local epochs {}"),
    ("local_steps", "local steps {}"),
    ("batch_size", "batch size {}"),
    ("learning_rate", "learning rate {}"),
    ("learning_rate_decay", "times {} after each round"),
)
_TRAINED = (  # what else of a training its flags say, and a report need not
    "client_optimiser", "optimiser_state", "drop_last", "dropout", "proximal",
    "server_optimiser", "server_learning_rate", "participation", "fraction", "weights", "shuffle",
)  # fmt: skip


def inferred(card: Card) -> str:
    """The column that the attacks infer; empty where the flags do not name it."""
    return _flag(card, "data_sensitive") or _flag(card, "sensitive")


def subject(card: Card, row: Row) -> str:
    """Data, model and inferred column: what must agree for runs to be read together."""
    column = inferred(card)
    parts = (row.data, row.model, f"inferring {column}" if column else "")
    return ", ".join(filter(None, parts))


def data_of(card: Card) -> tuple[str, ...]:
    """Hashes of its files, and the column that is predicted: whose results go together."""
    files = card.manifest.get("data")
    each = files[:_MOST] if isinstance(files, list) else []
    hashes = sorted(text(mapping(file).get("sha256")) for file in each)
    return (*hashes, _flag(card, "data_target"))


def of_runs(about: str, cards: Iterable[Card]) -> str:
    """A subject that other data have, too, with the runs that it is of."""
    names = list(dict.fromkeys(card.name for card in cards))
    return f"{about}, run{'s'[: len(names) > 1]} {', '.join(names)}"


def trained_alike(card: Card, other: Card) -> bool:
    """Whether two runs trained alike, as far as their flags say, but for defenses."""
    one, two = (mapping(each.manifest.get("flags")) for each in (card, other))
    named = (
        {name for name, _ in _TRAINING}
        | {*_TRAINED}
        | {
            name
            for name in (*one, *two)
            if isinstance(name, str)
            and name.startswith(("data_", "partition_", "model_"))
        }
    )
    return all(one.get(name) == two.get(name) for name in named - {*PLACES, *FILES})


def about(card: Card) -> list[tuple[str, str]]:
    """Data, inferred column, model, defense, training and seeds of a run."""
    flags, rows = mapping(card.manifest.get("flags")), card.rows
    seeds = sorted({row.seed for row in rows})
    items = [
        ("Data", _data(card)),
        ("Inferred", _columns(card)),
        ("Model", _names(row.model for row in rows)),
        ("Defense", _names(row.defense for row in rows)),
        ("Training", _training(flags, card.manifest.get("num_clients"))),
        ("Sweep", text(flags.get("sweep") or "")),
        ("Seeds", (f"{len(seeds)}: " if len(seeds) > 1 else "") + text(seeds)),
    ]
    return [(term, said) for term, said in items if said]


def clients(card: Card) -> dict[int, str]:
    """What the data call each client, empty where they have numbers only."""
    names = card.manifest.get("clients")
    given = names[:_MOST] if isinstance(names, list) else []
    return {client: text(name) for client, name in enumerate(given)}


def not_run(card: Card) -> dict[str, str]:
    """Attack -> why it was left out, in any point of the run."""
    points = mapping(card.manifest.get("not_run")).values()
    return {name: text(why) for point in points for name, why in mapping(point).items()}


def _stated(card: Card) -> list[list[str]]:
    stated = card.manifest.get("defense")
    if not stated or not isinstance(stated, Mapping | list):
        return []
    return [list(pair) for pair in itertools.islice(flat(stated), _MOST)]


def assumptions(card: Card) -> list[str]:
    """What each epsilon rests on."""
    return list(dict.fromkeys(v for k, v in _stated(card) if _ASSUMPTION in k))


def unknown_defenses(card: Card) -> list[str]:
    """Those of which attacks do not know what they do to messages."""
    return list(dict.fromkeys(v for k, v in _stated(card) if _UNKNOWN in k))


def folded(card: Card) -> list[Table]:
    """Budget of the defense, many data files, seconds per stage, versions and flags."""
    found = []
    if budget := _stated(card):
        caption = "Budget of the defense, by point, seed and client"
        found.append(Table(caption, ["what", "value"], budget))
    if len(files := _files(card)) > _INLINE:
        found.append(Table("Data files", ["file", "sha256", "origin"], files))
    stages = list(itertools.islice(_stages(card.manifest.get("seconds")), _MOST))
    total = _seconds(card.manifest.get("total_seconds"))
    if stages:
        header = ["point", "stage", "compile s", "run s"]
        caption = f"Seconds by stage, {total} in all" if total else "Seconds by stage"
        found.append(table(caption, header, stages, header[2:]))
    names = ("platform", "device", "devices", "cpus", "python")
    where = [[name, text(card.manifest.get(name))] for name in names]
    packages = _pairs(card.manifest.get("packages"))
    where += [[name, text(version)] for name, version in packages]
    found.append(Table("Versions", ["what", "value"], where))
    flags = [
        [f"--{name}", text(_shortened(name, value))]
        for name, value in _pairs(card.manifest.get("flags"))
        if name not in PLACES
    ]
    return [*found, Table("Flags", ["flag", "value"], flags)]


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, otherwise an empty one."""
    return value if isinstance(value, Mapping) else {}


def flat(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Name and text of every leaf of nested mappings and lists."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        parts = _pairs(value)
    elif isinstance(value, list) and any(isinstance(v, Mapping | list) for v in value):
        parts = [(str(index), each) for index, each in enumerate(value[:_MOST])]
    if not parts or depth == _DEEPEST:
        yield name, text(value)
        return
    for key, each in parts:
        yield from flat(each, f"{name}, {key}" if name else key, depth + 1)


def text(value: Any) -> str:
    """A JSON value for people, cut where it is too long or too deep."""
    if isinstance(value, list):
        shown = ", ".join(map(_scalar, value[:_MOST])) or "(none)"
    else:
        shown = _scalar(value)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."


def _pairs(value: Any) -> list[tuple[str, Any]]:
    """Keys and values of a mapping, not too many; none of anything else."""
    first = itertools.islice(mapping(value).items(), _MOST)
    return [(text(key), each) for key, each in first]


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.4g}"
        case list() | dict():
            return "..."
        case _:
            return str(value)


def _data(card: Card) -> str:
    names = _names(row.data for row in card.rows)
    reference = card.reference
    if reference is not None and not reference.same_data:
        names += f", a stand-in for {reference.data}: no result of {reference.data}"
    files = _files(card)
    if len(files) > _INLINE:
        return f"{names}; {len(files)} files"
    return "; ".join([names, *(f"{name} (sha256 {d}, {o})" for name, d, o in files)])


def _columns(card: Card) -> str:
    """What is inferred beside what target; empty where the flags do not say."""
    column = inferred(card)
    target = _flag(card, "data_target") or _flag(card, "target")
    return f"{column}; target {target}" if column and target else column


def _flag(card: Card, name: str) -> str:
    """A flag that is text, empty for all others."""
    value = mapping(card.manifest.get("flags")).get(name)
    return text(value) if isinstance(value, str) else ""


def _files(card: Card) -> list[list[str]]:
    """Name, begin of the digest and origin of every data file."""
    files = card.manifest.get("data")
    return [
        [
            text(file.get("name")),
            text(file.get("sha256"))[:12],
            text(file.get("origin")),
        ]
        for file in map(mapping, files[:_MOST] if isinstance(files, list) else [])
    ]


def _names(values) -> str:
    return ", ".join(dict.fromkeys(values))


def _training(flags: Mapping[str, Any], dealt: Any) -> str:
    """As told; clients that no flag counts, as dealt."""
    told = {**flags, "partition_clients": flags.get("partition_clients") or dealt}
    if told.get("learning_rate_decay") == 1:  # it stays
        del told["learning_rate_decay"]
    said = ((form, told.get(name)) for name, form in _TRAINING)
    return ", ".join(form.format(text(value)) for form, value in said if value)


def _shortened(name: str, value: Any) -> Any:
    """A path's last part: a report need not tell how a disk is organised."""
    if name in FILES and isinstance(value, str):
        return pathlib.PurePath(value).name
    return value


def _stages(seconds: Any) -> Iterator[Sequence[str]]:
    """Point, stage, seconds of compiling, seconds of running."""
    for name, entry in _pairs(seconds):
        nested = [(key, v) for key, v in _pairs(entry) if isinstance(v, Mapping)]
        if not nested:
            yield "", name, *_times(mapping(entry))
        for stage, each in nested:
            yield "" if name == "run" else name, stage, *_times(each)


def _times(entry: Mapping[str, Any]) -> Sequence[str]:
    return [_seconds(entry.get(name)) for name in ("compile", "run")]


def _seconds(value: Any) -> str:
    known = type(value) in (int, float) and 0 <= value < 1e12
    return f"{value:.2f}" if known else ""
