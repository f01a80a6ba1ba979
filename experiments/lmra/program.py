"""Local model reconstruction: decoding clients' local optima (Xu & Neglia, 2021).

    python -m experiments.lmra
    python -m experiments.lmra --flagfile=experiments/flags/lmra.table1.flags
    python -m experiments.lmra --flagfile=experiments/flags/lmra.fig1.flags --data_dir=DIR

Trains a federation, decodes every attacked client's local optimum from its messages
with several mappings, and compares what is decoded with the model it returned last, the
global model and its true local optimum: accuracy on its rows and on held-out rows, and
what the model is for: attribute and membership inference. Writes `rows.jsonl`,
`manifest.json` and figures into `--run_dir`.
"""

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import threadpoolctl
from rich.progress import Progress

from experiments.lmra import (
    attack,
    claims,
    clients,
    federation,
    members,
    optimum,
    reporting,
    scores,
)
from experiments.lmra import search as search_lib
from experiments.lmra.federation import Trained
from experiments.lmra.reporting import Attacked
from experiments.lmra.settings import ATTACKS, Config, Settings, cases, complete
from experiments.report import COMMAND, figures
from fljax.attacks.reconstruction.decoding import Decoded, Members
from fljax.driver.config import ConfigError
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start


class Prepared(NamedTuple):
    """The flags with nothing left open, and the rows they ask for."""

    settings: Settings
    clients: clients.Clients


def start(settings: Settings) -> Start:
    """Refuses what does not fit together."""
    settings = complete(settings)
    return Start(
        settings.data.name,
        lambda: Prepared(settings, clients.load(settings.data, settings.run)),
    )


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Trains, decodes and scores, or searches for the training of Table 1."""
    settings, loaded = prepared
    if settings.run.search:
        trained = _train(settings.run, loaded, output, bars)
        with output.stage("search"):
            found = search_lib.search(settings.run, loaded, trained)
        return Results(
            reporting.search_rows(settings, loaded, found),
            files=loaded.task.files,
            tables=[reporting.search_table(found)],
        )
    # Several small factorisations at once: threads of their own would wait for each
    # other.
    with threadpoolctl.threadpool_limits(1):
        attacked = _attack(settings, loaded, output, bars)
    rows = reporting.rows(settings, loaded, attacked)
    rows += claims.rows(settings, loaded, attacked)
    rows += members.rows(settings, loaded, attacked)
    gains = reporting.gains(rows)
    return Results(
        rows,
        figures.rendered(reporting.all_figures(settings, rows, attacked)),
        files=loaded.task.files,
        manifest={"gains": gains},
        tables=[
            *reporting.tables(settings, loaded, rows),
            *reporting.gain_lines(gains),
        ],
    )


def _attack(
    settings: Settings, loaded: clients.Clients, output: Output, bars: Progress
) -> Attacked:
    run, cache = settings.run, output.cache(loaded.task.files)
    trained = _train(run, loaded, output, bars)
    if not np.isfinite(trained.last).all():
        raise ConfigError(
            f"--learning_rate: training diverged with {run.learning_rate:g}"
        )
    bar = bars.add_task("decode and score", total=2 + len(run.mappings))

    def timed(name: str, compute: Callable):
        with output.stage(name):
            result = compute()
        bars.advance(bar)
        return result

    optima = timed("optima", lambda: optimum.local_optima(loaded, run.ridge))
    shape = trained.last.shape
    own = optima[None, :, : run.attacked]
    models = {
        "last_returned": np.asarray(trained.last),
        "global": np.broadcast_to(np.asarray(trained.global_)[:, :, None], shape),
    }
    decoded = {}
    for method in run.mappings:
        name = ATTACKS[method]
        decode = functools.partial(
            attack.decode, run, loaded.task, trained.messages, method
        )
        decoded[name] = timed(
            name, functools.partial(cache.cached, name, decode, Decoded, Members)
        )
        models[name] = decoded[name].estimate
        if not np.isfinite(models[name]).all():
            raise ConfigError(
                f"--mappings: {method} decodes a model that is not finite: expected "
                "another, or, of mlp, smaller --fit_rate and --decode_rate"
            )
    models["local_optimum"] = np.broadcast_to(own, shape)
    judge = scores.Judge(loaded, optima, run.attacked)
    scored = timed("scores", lambda: {k: judge(v) for k, v in models.items()})
    seen = np.asarray(trained.messages.mask).sum(axis=-1)
    return Attacked(scored, decoded, scores.relative_distances(optima), seen)


def _train(
    run: Config, loaded: clients.Clients, output: Output, bars: Progress
) -> Trained:
    bar = bars.add_task("rounds", total=run.num_rounds)
    with output.stage("train"):
        return federation.train(
            run,
            loaded,
            states=output.cache(loaded.task.files).states("train"),
            progress=lambda done: bars.update(bar, completed=done),
        )


def describe(prepared: Prepared) -> Iterator[str]:
    """The size of the run."""
    run, loaded = prepared.settings.run, prepared.clients
    yield (
        f"{loaded.task.name}: {len(loaded.sizes)} clients of "
        f"{', '.join(map(str, loaded.sizes))} rows, {loaded.task.num_inputs + 1} parameters"
    )
    yield (
        f"{len(cases(run))} cases x {len(run.seeds)} seeds x {run.attacked} attacked "
        f"clients, {run.num_rounds} rounds; mappings {', '.join(run.mappings)}"
    )


PROGRAM = Program(
    name=reporting.EXPERIMENT,
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
)
