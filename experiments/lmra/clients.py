"""Rows of the clients of both experiments: what is trained on and what scores by.

No module of the attack imports this one.

LEAF synthetic: every seed is a draw of its own; held-out rows come from the client's
distribution on top of the training rows, whose numbers are the paper's. The task is one
logistic regression with a scalar logit: 10 weights and an intercept.

Adult: persons with a doctorate are split by age (below 38, 38 to 52, above 52) among the
first three of ten clients, all others are dealt evenly to the other seven. Seeds draw
what is held out. The official files hold 127, 281 and 186 doctorates of these ages (117,
268 and 159 without unknown values); the paper trains on 126, 258 and 134. OPEN: its test
share, its encoding, and how it counts 12,300 rows where the files hold 12,110.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from experiments.lmra.settings import Config, DataConfig
from experiments.lmra.task import Task
from fljax import data, losses, models
from fljax.types import Features, Rows

_DOCTORATE = 16  # education_num
_AGES = (38, 52)


class ClientRows(NamedTuple):
    """Rows of all clients side by side, padded.

    Attributes:
      rows: leaves `[seeds, C, n, ...]`.
      mask: `[seeds, C, n]` bool.
      truth: `[seeds, C, n]` candidate of the sensitive attribute.
    """

    rows: Rows
    mask: np.ndarray
    truth: np.ndarray


class Clients(NamedTuple):
    """A federation's clients for every seed.

    Attributes:
      task: that they train.
      rows: training rows `[seeds, N, ...]`, sorted by client.
      sizes: `[C]` training rows of each.
      own: the same, client by client.
      held: rows of each that are not trained on.
    """

    task: Task
    rows: Rows
    sizes: np.ndarray
    own: ClientRows
    held: ClientRows


def load(settings: DataConfig, run: Config) -> Clients:
    """Reads or draws the rows of every seed and deals them."""
    if settings.name == "leaf_synthetic":
        drawn = [_leaf(settings, seed) for seed in run.seeds]
    else:
        table = data.load(
            "adult", data_dir=settings.dir, degree="bachelors", missing=settings.missing
        )
        dataset = _encode(table)
        drawn = [(dataset, _ages(dataset, settings, seed)) for seed in run.seeds]
    dataset = drawn[0][0]
    trains = [_load(d, [train for train, _ in parts]) for d, parts in drawn]
    helds = [_load(d, [held for _, held in parts]) for d, parts in drawn]
    own, held = _pad(trains), _pad(helds)
    flat = [_join([rows for rows, _ in client]) for client in trains]
    model = models.linear(dataset.num_numeric)
    attribute = dataset.attribute
    task = Task(
        name=dataset.table.name,
        model=model,
        loss_fn=losses.example_loss(model.apply, losses.logistic),
        num_inputs=dataset.num_numeric,
        candidates=None if attribute is None else attribute.candidates,
        attribute=None if attribute is None else attribute.name,
        files=dataset.table.files,
    )
    return Clients(
        task, rows=_stack(flat), sizes=own.mask[0].sum(axis=1), own=own, held=held
    )


def _encode(table: data.Table) -> data.Dataset:
    preset = dataclasses.replace(data.preset(_module(table), "linear"), split="none")
    return data.prepare(table, preset, seed=0)


def _module(table: data.Table) -> str:
    return table.name.removesuffix("_bachelors")


def _leaf(settings: DataConfig, seed: int):
    """A draw; the first rows of a client train, the others are held out."""
    extra = [
        max(1, round(n * settings.held_out / (1 - settings.held_out)))
        for n in settings.sizes
    ]
    total = np.add(settings.sizes, extra)
    table = data.load(
        "leaf_synthetic",
        seed=seed,
        sizes=tuple(map(int, total)),
        generator=settings.generator,
    )
    ends = np.cumsum(total)
    parts = [
        (np.arange(end - n, end - n + size), np.arange(end - n + size, end))
        for end, n, size in zip(ends, total, settings.sizes, strict=True)
    ]
    return _encode(table), parts


def _ages(dataset: data.Dataset, settings: DataConfig, seed: int):
    """Doctorates by age, then seven equal parts of the others."""
    frame = dataset.train.frame
    age, doctor = frame["age"].to_numpy(), frame["education_num"] >= _DOCTORATE
    young, old = age < _AGES[0], age > _AGES[1]
    rng = np.random.default_rng([seed, 1])
    groups = [np.flatnonzero(doctor & w) for w in (young, ~young & ~old, old)]
    groups += np.array_split(rng.permutation(np.flatnonzero(~doctor)), 7)
    parts = []
    for group in groups:
        mixed = rng.permutation(group)
        count = min(max(1, round(len(mixed) * settings.held_out)), len(mixed) - 1)
        parts.append((mixed[count:], mixed[:count]))
    return parts


def _load(dataset: data.Dataset, parts) -> list[tuple[Rows, np.ndarray]]:
    """Rows and truth of each client."""
    split = dataset.train
    return [
        (Rows(Features(*(leaf[p] for leaf in split.x)), split.y[p]), split.truth[p])
        for p in parts
    ]


def _join(rows: list[Rows]) -> Rows:
    numeric, codes = (
        np.concatenate([getattr(each.x, name) for each in rows])
        for name in Features._fields
    )
    return Rows(Features(numeric, codes), np.concatenate([each.y for each in rows]))


def _stack(rows: list[Rows]) -> Rows:
    return Rows(
        Features(
            *(np.stack([getattr(r.x, f) for r in rows]) for f in Features._fields)
        ),
        np.stack([r.y for r in rows]),
    )


def _pad(seeds: list[list[tuple[Rows, np.ndarray]]]) -> ClientRows:
    most = max(len(rows.y) for clients in seeds for rows, _ in clients)

    def wide(leaf):
        return np.pad(leaf, [(0, most - len(leaf))] + [(0, 0)] * (leaf.ndim - 1))

    def every(pick):
        return np.stack(
            [np.stack([wide(pick(*each)) for each in clients]) for clients in seeds]
        )

    return ClientRows(
        Rows(
            Features(every(lambda r, _: r.x.numeric), every(lambda r, _: r.x.codes)),
            every(lambda r, _: r.y),
        ),
        every(lambda r, _: np.ones(len(r.y), bool)),
        every(lambda _, truth: truth),
    )
