"""What attacks name for every row, as a file; the truth is not in it."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from experiments.aia.adversary import Attacked
from experiments.aia.setup import Setup
from fljax.data import Dataset


class Guess(NamedTuple):
    """Of one attack.

    Attributes:
      name: attack and setting.
      value: `[seeds, C, n]` number of the candidate, -1 for none, or encoded value.
      probability: `[seeds, C, n]` that it believes this to have; None without.
      clients: `[seeds, C]` bool, whom it can say something about.
    """

    name: str
    value: np.ndarray
    probability: np.ndarray | None
    clients: np.ndarray


def of_attack(attacked: Attacked) -> Guess | None:
    """None where an attack gives numbers of another kind only."""
    said = attacked.prediction
    if said.value is None:
        return None
    value = np.asarray(said.value)
    believed = said.details.get("probability")
    if believed is not None:
        index = np.maximum(value, 0)[..., None].astype(np.int64)
        believed = np.take_along_axis(np.asarray(believed), index, -1)[..., 0]
    name = f"{attacked.name} ({said.setting})"
    return Guess(name, value, believed, np.asarray(attacked.clients))


def to_csv(points: Sequence[tuple[Setup, Sequence[Guess]]]) -> str:
    """One line for each client's row of every point and seed."""
    names = dict.fromkeys(guess.name for _, found in points for guess in found)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    of_names = (column for name in names for column in (name, f"{name} probability"))
    writer.writerow(["point", "seed", "client", "row", *of_names])
    for setup, found in points:
        by_name = {guess.name: guess for guess in found}
        for seed, number in enumerate(setup.config.run.seeds):
            dataset = setup.clients.datasets[seed]
            for client, count in enumerate(setup.clients.sizes[seed]):
                cells = [
                    list(_cells(by_name.get(name), dataset, (seed, client), count))
                    for name in names
                ]
                label = setup.clients.name(seed, client)
                for row in range(count):
                    said = (cell for each in cells for cell in each[row])
                    writer.writerow([setup.label, number, label, row, *said])
    return file.getvalue()


def _cells(
    guess: Guess | None, dataset: Dataset, at: tuple[int, int], count: int
) -> Iterator[tuple[str, str]]:
    """Value and probability of each of so many rows, empty where nothing is said."""
    if guess is None or not guess.clients[at]:
        yield from [("", "")] * count
        return
    believed = None if guess.probability is None else guess.probability[at]
    texts = _texts(dataset, guess.value[at][:count])
    for row, text in enumerate(texts):
        yield text, "" if believed is None else f"{believed[row]:.4f}"


def _texts(dataset: Dataset, values: np.ndarray) -> Iterator[str]:
    """Values as the data call them."""
    attribute, encoder = dataset.attribute, dataset.encoder
    assert attribute is not None
    if attribute.kind != "continuous":
        for value in values:
            yield attribute.categories[value] if value >= 0 else ""
        return
    back = {"log": np.exp, "log1p": np.expm1}.get(encoder.dense[-1].form, np.asarray)
    for value in back(values.astype(np.float64) * encoder.scale[-1] + encoder.mean[-1]):
        yield f"{value:.6g}"
