"""What noise promises: as a paper prints it, as it is implemented, and tightly.

    python -m experiments.accounting
    python -m experiments.accounting --accounting_method=dp_sgd --accounting_records=600
    python -m experiments.accounting --accounting_method=fed_sdp --target_epsilon=1

Without a method this is Table VI of Wei et al. (2021): each printed epsilon beside ours,
then what else can be said of those trainings. With one it accounts for a training of
one's own, and with a target says how much noise or how many rounds keep it. Nothing is
trained. With `--run_dir` rows and manifest are written there, for `experiments.report`.
"""

import dataclasses
import math
from typing import Any, NamedTuple

from rich.console import Console

from experiments import epsilons
from experiments.accounting import table6, tables
from experiments.accounting.settings import AccountingConfig, RunConfig, Settings
from experiments.accounting.tables import Kept
from experiments.report import COMMAND
from fljax import privacy
from fljax.driver import console
from fljax.driver.config import ConfigError
from fljax.driver.output import Results
from fljax.driver.program import Program, Start
from fljax.privacy import Statement, Training, fed_cdp, fed_sdp
from fljax.results import Row

_DEFAULT = AccountingConfig()


class Prepared(NamedTuple):
    """What was asked for, and the training that it is about."""

    settings: Settings
    training: Training


def start(settings: Settings) -> Start:
    """Refuses what does not fit together."""
    training = _check(*settings)
    name = settings.accounting.method or "table6"
    return Start(name, lambda: Prepared(settings, training))


def work(prepared: Prepared, *_) -> Results:
    """Accounts and prints."""
    (config, run), training = prepared
    screen = console.screen()
    if config.method is None:
        rows, defense = _table6(screen, run.notes)
    else:
        rows, defense = _own(screen, config.method, training, run)
    return Results(rows, manifest={"defense": defense})


def _table6(out: Console, notes: bool) -> tuple[list[Row], dict[str, Any]]:
    """Prints the table; returns rows, and what the manifest says of them."""
    entries, modes = table6.printed(), table6.modes()
    tables.show_table6(out, entries, modes, notes)
    said = {
        f"{mode.method}, L = {mode.local_steps}, {mode.name}": {
            "epsilon": {
                data: epsilons.as_json(s.epsilon) for data, s in mode.statements.items()
            },
            "assumption, numbers of mnist": (
                f"{mode.method}, {mode.name}: {mode.first.assumption}"
            ),
        }
        for mode in modes
    }
    return table6.rows(entries, modes), said


def _own(
    out: Console, method: str, training: Training, run: RunConfig
) -> tuple[list[Row], dict[str, Any]]:
    """The same for a training of one's own, with what keeps a target."""
    found = privacy.statements("fed_cdp" if method == "dp_sgd" else method, training)
    tables.show_training(out, method, training, found, run.notes)
    said: dict[str, Any] = {
        f"{s.way}, {s.unit}, {s.name}": {
            "epsilon": epsilons.as_json(s.epsilon),
            "assumption": f"{s.way}, of a {s.unit}, {s.name}: {s.assumption}",
        }
        for s in found
    }
    if run.target_epsilon is not None:
        kept = calibrate(method, training, run.target_epsilon)
        tables.show_kept(out, run.target_epsilon, training, kept)
        said["target"] = [_plain_kept(each) for each in kept]
    return [_row(method, statement) for statement in found], said


def calibrate(method: str, training: Training, target: float) -> list[Kept]:
    """Noise and rounds that keep an epsilon, as implemented and as recommended.

    Where these are one, once. None stands for no noise that is enough, and for more than
    a million rounds.

    Raises:
      ConfigError: for a target that nothing can be said of.
    """
    of = fed_sdp if method == "fed_sdp" else fed_cdp
    say_by_way = {"implemented": of.implemented, "recommended": of.recommended}
    found = []
    for statement in tables.distinct([say(training) for say in say_by_way.values()]):
        say = say_by_way[statement.way]
        kept: dict[str, Any] = {}
        for name, search in (
            ("sigma", privacy.sigma_for),
            ("rounds", privacy.rounds_for),
        ):
            try:
                kept[name] = search(target, training, say)
            except privacy.Unattainable:
                kept[name] = None
            except ValueError as error:
                raise ConfigError(f"--target_epsilon: {error}") from error
        found.append(Kept(statement, **kept))
    return found


def _check(config: AccountingConfig, run: RunConfig) -> Training:
    values = dataclasses.asdict(config)
    if config.method is None:
        changed = [n for n, v in values.items() if v != getattr(_DEFAULT, n)]
        named = [f"--accounting_{name}" for name in changed]
        if run.target_epsilon is not None:
            named.append("--target_epsilon")
        if named:
            raise ConfigError(
                f"{named[0]}: needs --accounting_method, without which Table VI is shown"
            )
    if config.method == "fed_sdp" and config.batches != _DEFAULT.batches:
        raise ConfigError("--accounting_batches: fed_sdp does not depend on batches")
    if config.method == "fed_sdp" and config.copies != _DEFAULT.copies:
        raise ConfigError("--accounting_copies: fed_sdp does not depend on copies")
    if config.copies != _DEFAULT.copies and config.batches == "without_replacement":
        raise ConfigError(
            "--accounting_copies: nothing is known of copies with "
            "--accounting_batches=without_replacement"
        )
    if config.method == "dp_sgd":
        if config.layers not in (1, _DEFAULT.layers):
            raise ConfigError("--accounting_layers: dp_sgd clips all layers together")
        values["layers"] = 1
    values.pop("method")
    try:
        return Training(**values)
    except ValueError as error:
        raise ConfigError(f"--accounting_{error}") from error


def _row(method: str, statement: Statement) -> Row:
    unit = {"record": "instance"}.get(statement.unit, statement.unit)
    value = math.nan if statement.epsilon is None else statement.epsilon
    labels = "accounting", "own", "any", method, method, statement.way
    point = f"unit={unit};{statement.name}"
    return Row(*labels, point, 0, "all", "epsilon", value, 1)


def _plain_kept(each: Kept) -> dict[str, Any]:
    return {
        "statement": f"{each.statement.way}: {each.statement.name}",
        "smallest sigma": each.sigma,
        "most rounds": each.rounds,
    }


PROGRAM = Program(
    name="accounting",
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    prints_only=True,
)
