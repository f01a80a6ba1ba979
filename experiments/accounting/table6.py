"""Table VI of Wei et al. (2021): what it prints, and what else can be said.

The five trainings are those of its Table I with the defaults of section VII: sigma = 6,
C = 4, delta = 1e-5, K = 1000 clients of whom K_t = 100 are in a round. Every printed
epsilon is reproduced to one unit of its last digit by the recipe of
`accounting.as_printed` on one step more than there are (T L + 1; T + 1 rounds for
Fed-SDP); on T L steps 22 of the 30 are further off, those of few steps most.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from experiments.report import published
from fljax import privacy
from fljax.privacy import Statement, Training, fed_cdp, fed_sdp
from fljax.results import Row

Say = Callable[[Training], Statement]


def _training(rounds: int, records: int, batch_size: int, copies: int) -> Training:
    """Copies: how many of 1000 clients hold the same example, K N_i / N."""
    return Training(
        rounds=rounds,
        local_steps=100,
        batch_size=batch_size,
        records=records,
        clients=1000,
        clients_per_round=100,
        sigma=6.0,
        clip=4.0,
        layers=3,
        delta=1e-5,
        copies=copies,
    )


TRAININGS = {
    "mnist": _training(rounds=100, records=500, batch_size=5, copies=10),
    "cifar10": _training(rounds=100, records=400, batch_size=4, copies=10),
    "lfw": _training(rounds=60, records=300, batch_size=3, copies=132),
    "adult": _training(rounds=10, records=300, batch_size=3, copies=8),
    # Every client has the whole data set.
    "cancer": _training(rounds=3, records=400, batch_size=4, copies=1000),
}


class Printed(NamedTuple):
    """One entry of the table beside ours.

    Attributes:
      data: name of the data set.
      setting: number of local iterations and unit, as in `published.csv`.
      method: 'fed_cdp' or 'fed_sdp'.
      published: the entry.
      shifted: the recipe on one step more than there are.
      exact: the recipe on as many steps as there are.
    """

    data: str
    setting: str
    method: str
    published: float
    shifted: float
    exact: float

    @property
    def last_digits(self) -> tuple[int, int]:
        """Differences of `shifted` and `exact`, in units of the last of four digits."""
        return tuple(
            round(1e4 * ours) - round(1e4 * self.published)
            for ours in (self.shifted, self.exact)
        )


class Mode(NamedTuple):
    """One line of the table of modes: a statement about each of the five trainings.

    Attributes:
      name: what it is.
      method: 'fed_cdp' or 'fed_sdp'.
      local_steps: L.
      statements: by data set.
    """

    name: str
    method: str
    local_steps: int
    statements: dict[str, Statement]

    @property
    def first(self) -> Statement:
        """About the first data set; all others differ in their numbers only."""
        return next(iter(self.statements.values()))


def printed() -> list[Printed]:
    """All 30 entries, in the order of the stored table."""
    found = []
    for line in published.stored("wei2021"):
        if line["table"] != "table6":
            continue
        training = TRAININGS[line["dataset"]]
        local = int(line["setting"].split(";")[0].removeprefix("local_iterations="))
        training = dataclasses.replace(training, local_steps=local)
        rate, steps = training.sampling_rate, training.steps
        if line["method"] == "fed_sdp":
            rate, steps = training.participation, training.rounds
        shifted, exact = (
            privacy.as_printed(training.sigma, rate, count, training.delta)
            for count in (steps + 1, steps)
        )
        where = line["dataset"], line["setting"], line["method"]
        found.append(Printed(*where, float(line["value"]), shifted, exact))
    return found


def modes() -> list[Mode]:
    """What was implemented, as code and as Algorithms 1 and 2 have it, and recommended."""
    found = [*_of_records(100), *_of_clients(), *_fed_sdp(), *_of_records(1)]
    return [
        Mode(name, method, local, _about(say, local, changed))
        for name, method, local, say, changed in found
    ]


def refused(training: Training) -> list[Statement]:
    """Claims about either method that no number is given for."""
    each = dataclasses.replace(training, draws="each")
    return [*fed_cdp.refused(each), *fed_sdp.refused(training)]


def rows(entries: list[Printed], lines: list[Mode]) -> list[Row]:
    """One row per number; the table's own entries have the metric `epsilon`."""
    found = []

    def keep(data, method, way, point, metric, value, count):
        labels = "accounting", data, "any", method, method, way, point
        found.append(Row(*labels, 0, "all", metric, value, count))

    for entry in entries:
        point = f"{entry.data};{entry.setting}"
        where = entry.data, entry.method, "printed", point
        keep(*where, "epsilon", entry.shifted, 1)
        keep(*where, "epsilon_of_exact_steps", entry.exact, 1)
    for line in lines:
        for data, said in line.statements.items():
            unit = {"record": "instance"}.get(said.unit, said.unit)
            point = (
                f"{data};local_iterations={line.local_steps};unit={unit};{line.name}"
            )
            value = float("nan") if said.epsilon is None else said.epsilon
            keep(data, line.method, said.way, point, "epsilon", value, 1)
    return found


def _about(say: Say, local: int, changed: dict) -> dict[str, Statement]:
    return {
        data: say(dataclasses.replace(training, local_steps=local, **changed))
        for data, training in TRAININGS.items()
    }


def _of_records(local: int):
    """Fed-CDP at instance level; `(name, method, L, statement, changes)`."""

    def every(training):
        return fed_cdp.implemented(training)

    def drawn(training):
        return fed_cdp.implemented(training, every=False)

    found = [("recommended", fed_cdp.recommended, {})]
    if local > 1:
        found.append(("recommended, drawn clients", _recommended_drawn, {}))
    for draws, text in (("one", "one draw"), ("each", "B draws")):
        poisson = {"draws": draws}
        found.append((f"{text}, Poisson batches", every, poisson))
        if local == 1:
            continue
        passes = {"draws": draws, "batches": "fixed"}
        fixed_size = {"draws": draws, "batches": "without_replacement"}
        found += [
            (f"{text}, Poisson batches, biases apart (M = 6)", every,
             {**poisson, "layers": 6}),
            (f"{text}, Poisson batches, drawn clients", drawn, poisson),
            (f"{text}, one pass, every round", every, passes),
            (f"{text}, one pass, drawn clients", drawn, passes),
            (f"{text}, one pass, all copies (approximate)", fed_cdp.copied, passes),
            (f"{text}, B of N_i without replacement", every, fixed_size),
            (f"{text}, one example seen (type 2), zeroed", fed_cdp.example, poisson),
            (f"{text}, one example seen (type 2), replaced", _replaced, poisson),
        ]  # fmt: skip
    return [(name, "fed_cdp", local, say, changed) for name, say, changed in found]


def _of_clients():
    """Fed-CDP at client level."""

    def one_round(training):
        return fed_cdp.implemented_client(training, rounds=1)

    found = []
    for draws, text in (("one", "one draw"), ("each", "B draws")):
        changed = {"draws": draws, "batches": "fixed"}
        found.append((f"{text}, whole client, one round", one_round, changed))
        name = f"{text}, whole client, every round"
        found.append((name, fed_cdp.implemented_client, changed))
    return [(name, "fed_cdp", 100, say, changed) for name, say, changed in found]


def _fed_sdp():
    found = [("recommended", fed_sdp.recommended, {})]
    for draws, text in (("one", "one draw"), ("each", "K_t draws")):
        changed = {"draws": draws}
        found += [
            (f"{text}, Poisson clients", fed_sdp.implemented, changed),
            (f"{text}, Poisson clients, biases apart (M = 6)", fed_sdp.implemented,
             {**changed, "layers": 6}),
            (f"{text}, K_t of K clients", fed_sdp.fixed_size, changed),
            (f"{text}, messages seen", fed_sdp.messages, changed),
            (f"{text}, a record", fed_sdp.record, changed),
        ]  # fmt: skip
    none = ("no noise (as committed)", fed_sdp.implemented, {"sigma": 0.0})
    return [(name, "fed_sdp", 100, *rest) for name, *rest in [*found, none]]


def _recommended_drawn(training: Training) -> Statement:
    return fed_cdp.recommended(training, every=False)


def _replaced(training: Training) -> Statement:
    return fed_cdp.example(training, replace=True)
