"""What gradients leak, and which defense hides it (Wei et al., 2021, Table VII).

    python -m experiments.gradient_leakage
    python -m experiments.gradient_leakage --data_name=mnist --data_dir=DIR \\
        --flagfile=experiments/flags/gradient_leakage.mnist.flags

Lets an adversary reconstruct the images of every client from what it sees of the client
under every method, and writes `rows.jsonl`, `manifest.json` and pictures (truth above the
reconstructions: Figures 1, 4 and 5) into `--run_dir`.

Where noise is drawn once, on the sum over a batch (Fed-CDP's recommended mode, DP-SGD,
median clipping), who sees an example's gradient before the sum sees it only clipped,
and it leaks as where noise comes after the mean: type `2 before the sum`. Type `2` of
these methods is the release of a batch that holds this example alone.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax
import numpy as np
from rich.progress import Progress

from experiments.gradient_leakage import (
    adversary,
    reporting,
    scores,
    targets,
    views,
)
from experiments.gradient_leakage import truth as truth_lib
from experiments.gradient_leakage.attack import Attack
from experiments.gradient_leakage.blocks import Blocks
from experiments.gradient_leakage.messages import Senders
from experiments.gradient_leakage.reporting import Cell
from experiments.gradient_leakage.scores import Score
from experiments.gradient_leakage.settings import Config, Settings, complete
from experiments.gradient_leakage.targets import Network, Targets
from experiments.gradient_leakage.truth import Truth
from experiments.gradient_leakage.views import View
from experiments.report import COMMAND, figures
from fljax.attacks.inversion import Inversion
from fljax.defenses.parts import SpecError
from fljax.driver import config
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start


class Prepared(NamedTuple):
    """The flags with nothing left open, and the clients, seen and unseen."""

    settings: Settings
    attacked: Targets
    truth: Truth


def start(settings: Settings) -> Start:
    """Fills in the paper's choices and refuses what does not fit together."""
    settings = complete(settings)
    views.views(settings.run)  # builds every defense
    return Start(
        settings.data.name,
        lambda: Prepared(settings, *truth_lib.load(settings.data, settings.run)),
    )


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Attacks every client in every view."""
    settings, attacked, truth = prepared
    cells, chance, cache = [], {}, output.cache(attacked.files)
    for name in settings.run.networks:
        with output.stage(name):
            network = targets.network(name, attacked, settings.run.seed)
            part = cache.part(name)
            cells += _attack(settings.run, attacked, truth, network, bars, part)
            chance[name] = _chance(settings.run, attacked, truth, network)
    return Results(
        reporting.rows(settings, cells, chance),
        figures.rendered(reporting.all_figures(settings, truth, cells)),
        files=attacked.files,
        manifest={
            "complete": config.to_flags(settings.run),
            "summary": reporting.summary(cells),
        },
        tables=reporting.tables(settings, cells, chance),
    )


def _attack(
    run: Config, attacked: Targets, truth: Truth, network: Network, bars, part
) -> list[Cell]:
    """Every view on one network; what looks the same is attacked once."""
    blocks = Blocks(attacked.num_clients, run.at_once)
    senders = Senders(run, truth, network, blocks)
    attack = Attack(run, attacked, network, blocks)
    done, found = {}, []
    for view in views.views(run):
        for pruned in run.pruned:
            same = views.identity(run, view, pruned)
            if same not in done:
                types = view.setting.partition("=")[2]
                title = f"{network.name} {types} {view.spec}"
                zeroed = f" pruned={pruned:g}" if pruned else ""
                bar = bars.add_task(title + zeroed, total=attacked.num_clients)
                mine = part.part(f"attack{len(done)}")
                done[same] = []
                for clients in blocks:
                    guess = functools.partial(
                        _reconstruct, senders, attack, view, pruned, clients
                    )
                    each = mine.cached(f"clients{clients[0]}", guess, Inversion)
                    scored = _score(run, each, clients, truth, view, network.read)
                    done[same] += scored
                    bars.advance(bar, len(scored))
            found.append(Cell(attacked.name, network.name, view, pruned, done[same]))
    return found


def _chance(
    run: Config, attacked: Targets, truth: Truth, network: Network
) -> reporting.Chance:
    """What needs no message, for so many images as are sought: of some views for one."""
    sought = {run.images_sought(view.example) for view in views.views(run)}
    about = attacked.mean, network.read, attacked.public
    found: dict[str, Mapping[str, np.ndarray]] = {}
    for count in sorted(sought, reverse=True):
        suffix = scores.OF_ONE if count < max(sought) else ""
        levels = scores.baselines(run, truth_lib.first(truth, count), *about)
        found |= {name + suffix: level for name, level in levels.items()}
    return found


def _reconstruct(
    senders: Senders, attack: Attack, view: View, pruned: float, clients: np.ndarray
) -> Inversion:
    observed = senders.observed(view, pruned, clients)
    return attack.reconstruct(view, pruned, clients, observed)


def _score(
    run: Config, found: Inversion, clients, truth: Truth, view: View, read
) -> list[Score]:
    """Of every client of a block; one that is repeated counts once."""
    owned = truth_lib.first(truth, run.images_sought(view.example))
    return [
        scores.score(
            run,
            jax.tree.map(lambda leaf, at=place: leaf[at], found),
            owned.x[client],
            owned.y[client],
            read,
        )
        for client, place in zip(*np.unique(clients, return_index=True), strict=True)
    ]


def describe(prepared: Prepared) -> Iterator[str]:
    """The size of every attack."""
    (_, run), attacked, _ = prepared
    shape = attacked.shape[1:]
    for name in run.networks:
        params = targets.network(name, attacked, run.seed).params
        count = sum(leaf.size for leaf in jax.tree.leaves(params))
        yield f"{attacked.name} {list(shape)}, {name} of {count} parameters"
    for view in views.views(run):
        images = run.images_sought(view.example)
        how = adversary.solver_name(run, (images, *shape))
        yield (
            f"{view.spec}, {view.setting}: {attacked.num_clients} clients of {images} "
            f"images, {len(run.pruned)} fractions pruned, up to "
            f"{run.starts * run.iterations} attack iterations of {how}"
        )


PROGRAM = Program(
    name=reporting.EXPERIMENT,
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
    errors=(SpecError,),
)
