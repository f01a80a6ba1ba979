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
from collections.abc import Callable

import numpy as np
import threadpoolctl

from experiments.lmra import attack, clients, federation, optimum, reporting, scores
from experiments.lmra import search as search_lib
from experiments.lmra.reporting import Attacked
from experiments.lmra.settings import (
    ATTACKS,
    Config,
    DataConfig,
    Told,
    cases,
    complete,
)
from experiments.report import figures
from fljax import data, parallel
from fljax.attacks.reconstruction.decoding import Decoded
from fljax.driver import config, console
from fljax.driver.output import Output

ERRORS = (data.DataError,)


def main() -> None:
    """Attacks what the flags ask for and writes the results."""
    run(Told(config.read(DataConfig, "data"), config.read(Config)))


def run(told: Told) -> None:
    """Trains, decodes, scores, and writes rows, manifest and figures.

    Raises:
      ConfigError: if the values do not fit each other or the data.
    """
    parallel.use_cpu_cores()
    values = config.to_flags(told.data, "data") | config.to_flags(told.run)
    told = complete(told)
    out = Output(told.run, reporting.EXPERIMENT, told.data.name, values)
    with out.stage("data"):
        loaded = clients.load(told.data, told.run)
    if told.run.dry_run:
        _describe(told, loaded)
        return
    if told.run.search:
        with out.stage("search"):
            found = search_lib.search(told.run, loaded)
        out.write(
            reporting.search_rows(told, loaded, found), {}, files=loaded.task.files
        )
        out.show(reporting.search_table(found))
        return
    # Several small factorisations at once: threads of their own would wait for each
    # other.
    with threadpoolctl.threadpool_limits(1):
        attacked = _attack(told, loaded, out)
    rows = reporting.rows(told, loaded, attacked)
    drawn = figures.rendered(reporting.all_figures(told, loaded, rows, attacked))
    gains = reporting.gains(rows)
    out.write(rows, drawn, files=loaded.task.files, gains=gains)
    out.show(*reporting.tables(told, loaded, rows), *reporting.gain_lines(gains))


def _attack(told: Told, loaded: clients.Clients, out: Output) -> Attacked:
    run = told.run
    part = out.cache(loaded.task.files)
    with out.autosave.interruptible(), console.progress() as bars:
        bar = bars.add_task("train and decode", total=3 + len(run.mappings))

        def timed(name: str, work: Callable):
            with out.stage(name):
                found = work()
            bars.advance(bar)
            return found

        trained = timed("train", lambda: federation.train(run, loaded))
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
                name, functools.partial(part.cached, name, decode, Decoded)
            )
            models[name] = decoded[name].estimate
        models["local_optimum"] = np.broadcast_to(own, shape)
        judge = scores.Judge(loaded, optima, run.attacked)
        scored = timed("scores", lambda: {k: judge(v) for k, v in models.items()})
    return Attacked(scored, decoded, scores.relative_distances(optima))


def _describe(told: Told, loaded: clients.Clients) -> None:
    """The size of the run."""
    run, out = told.run, console.screen()
    out.print(
        f"{loaded.task.name}: {len(loaded.sizes)} clients of "
        f"{', '.join(map(str, loaded.sizes))} rows, {loaded.task.num_inputs + 1} parameters"
    )
    out.print(
        f"{len(cases(run))} cases x {len(run.seeds)} seeds x {run.attacked} attacked "
        f"clients, {run.num_rounds} rounds; mappings {', '.join(run.mappings)}"
    )


def define(flags: Callable = config.define) -> None:
    """Registers the flags."""
    flags(DataConfig, "data")
    flags(Config)
