"""What gradients leak, and which defense hides it (Wei et al., 2021, Table VII).

    python -m experiments.gradient_leakage
    python -m experiments.gradient_leakage --data_name=mnist --data_dir=DIR \\
        --flagfile=experiments/flags/gradient_leakage.mnist.flags

Lets an attacker reconstruct the images of every client from what she sees of her under
every method, and writes `rows.jsonl`, `manifest.json` and pictures (truth above the
reconstructions: Figures 1, 4 and 5) into `--run_dir`.

Where noise is drawn once, on the sum over a batch (Fed-CDP's recommended mode, DP-SGD,
median clipping), who sees an example's gradient before the sum sees it only clipped,
and it leaks as where noise comes after the mean: type `2 before the sum`. Type `2` of
these methods is the release of a batch that holds this example alone.
"""

import functools
from collections.abc import Callable

import jax

from experiments.gradient_leakage import attack, reporting, scores, views
from experiments.gradient_leakage import victims as victims_lib
from experiments.gradient_leakage.reporting import Cell
from experiments.gradient_leakage.settings import Config, DataConfig, Told, complete
from experiments.gradient_leakage.victims import Victim, Victims
from experiments.report import figures
from fljax import data, parallel
from fljax.driver import config, console
from fljax.driver.output import Output

ERRORS = (data.DataError,)


def main() -> None:
    """Attacks what the flags ask for and writes the results."""
    run(Told(config.read(DataConfig, "data"), config.read(Config)))


def run(told: Told) -> None:
    """Attacks every client in every view and writes rows, manifest and pictures.

    Raises:
      ConfigError: if the values do not fit each other or the data.
    """
    parallel.use_cpu_cores()
    values = config.to_flags(told.data, "data") | config.to_flags(told.run)
    told = complete(told)
    out = Output(told.run, reporting.EXPERIMENT, told.data.name, values)
    with out.stage("data"):
        victims = victims_lib.load(told.data, told.run)
    if told.run.dry_run:
        _describe(told.run, victims)
        return
    cells, chance = [], {}
    with out.autosave.interruptible(), console.progress() as bars:
        for name in told.run.networks:
            with out.stage(name):
                part = out.cache(victims.files).part(name)
                victim = victims_lib.network(name, victims, told.run.seed)
                cells += _attack(told.run, victim, victims, bars, part)
                chance[name] = scores.baselines(told.run, victims, victim.read)
    out.write(
        reporting.rows(told, cells, chance),
        figures.rendered(reporting.all_figures(told, victims, cells)),
        files=victims.files,
        complete=config.to_flags(told.run),
        summary=reporting.summary(cells),
    )
    out.show(*reporting.tables(told, cells, chance))


def _attack(run: Config, victim: Victim, victims: Victims, bars, part) -> list[Cell]:
    """Every view on one network; what looks the same is attacked once."""
    attacks = attack.Attacks(run, victims, victim)
    done, found = {}, []
    for view in views.views(run):
        for pruned in run.pruned:
            same = views.identity(run, view, pruned)
            if same not in done:
                types = view.setting.partition("=")[2]
                title = f"{victim.name} {types} {view.method}"
                zeroed = f" pruned={pruned:g}" if pruned else ""
                bar = bars.add_task(title + zeroed, total=len(victims.x))
                progress = functools.partial(bars.advance, bar)
                mine = part.part(f"attack{len(done)}")
                reconstructed = attacks.run(view, pruned, progress, mine)
                done[same] = _score(run, reconstructed, victims, view, victim.read)
            found.append(Cell(victims.name, victim.name, view, pruned, done[same]))
    return found


def _score(run: Config, found, victims: Victims, view, read):
    shown = victims_lib.only(victims, 1) if view.example else victims
    return [
        scores.score(run, each, shown.x[client], shown.y[client], read)
        for client, each in found
    ]


def _describe(run: Config, victims: Victims) -> None:
    """The size of every attack."""
    out = console.screen()
    shape = victims.x.shape[2:]
    for name in run.networks:
        params = victims_lib.network(name, victims, run.seed).params
        count = sum(leaf.size for leaf in jax.tree.leaves(params))
        out.print(f"{victims.name} {list(shape)}, {name} of {count} parameters")
    for view in views.views(run):
        images = 1 if view.example else run.images
        out.print(
            f"{view.method}, {view.setting}: {len(victims.x)} clients of {images} "
            f"images, {len(run.pruned)} fractions pruned, up to "
            f"{run.starts * run.iterations} attack iterations"
        )


def define(flags: Callable = config.define) -> None:
    """Registers the flags."""
    flags(DataConfig, "data")
    flags(Config)
