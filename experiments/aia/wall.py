"""What of a run an adversary gets: from here on nothing leads back to the truth."""

import jax
import numpy as np
from rich.progress import Progress

from experiments.aia.adversary import Adversary, of_seeds
from experiments.aia.adversary_config import MESSAGES, Sight
from experiments.aia.setup import Setup
from experiments.tabular import schedules
from experiments.tabular.clients import outputs
from experiments.tabular.defense_config import BoundDefense
from experiments.tabular.settings import TrainConfig
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.defenses import specs
from fljax.defenses.specs import Spec
from fljax.transcript import sums, views
from fljax.transcript.sums import Server
from fljax.types import Transcript

_CHOSEN = ("clip", "sigma")


def view(setup: Setup, seed: int = 0, sight: Sight = MESSAGES) -> AdversaryView:
    """What the adversary of one seed has before the training.

    Args:
      setup: of the run, with a sensitive attribute.
      seed: position of the seed.
      sight: what it will see.
    """
    config, table, clients = setup.config, setup.table, setup.clients
    attribute = clients.datasets[seed].attribute
    assert attribute is not None
    return AdversaryView(
        transcript=None,
        messages=None,
        clients=np.arange(clients.sizes.shape[1]),
        known=jax.tree.map(lambda leaf: leaf[seed], setup.known),
        candidates=attribute.candidates,
        continuous=attribute.kind == "continuous",
        loss_fn=setup.problem.loss_fn,
        apply=setup.problem.model.apply,
        task=table.task,
        outputs=outputs(table),
        linear=config.model.name == "linear",
        training=local_training(config.train),
        seed=config.run.seeds[seed],
        defense=known_defense(setup.problem.bound_defense, seed)
        if config.attack.knows_defense
        else None,
        sees=sight.view,
    )


def server(setup: Setup, seed: int = 0) -> Server:
    """How the server of one seed makes models of messages."""
    train, sizes = setup.config.train, setup.clients.sizes[seed]
    plain = train.server_optimiser == "sgd"
    return Server(
        clients=np.arange(len(sizes)),
        weights=sizes if train.weights == "rows" else np.ones(len(sizes)),
        learning_rate=setup.problem.rates.server if plain else None,
        everybody=train.participation == "all"
        and setup.config.defense.stop_at_epsilon is None,
    )


def known_defense(bound: BoundDefense | None, seed: int) -> Spec | None:
    """That of a seed, with the clip and the noise that were chosen for it.

    Where clients have noise of different sizes, the mean of them.
    """
    if bound is None:
        return None
    first = specs.alternatives(bound.spec)[0]
    chosen = [
        {name: float(np.mean(v[seed])) for name, v in part.items() if name in _CHOSEN}
        for part in bound.parts
    ]
    return specs.replaced(first, chosen)


def local_training(train: TrainConfig) -> LocalTraining:
    """How clients train; FedSGD is one step of rate 1 on all rows."""
    one_step = train.algorithm == "fed_sgd"
    adam = not one_step and train.client_optimiser == "adam"
    work = schedules.local_work(train)
    return LocalTraining(
        batch_size=work.batch_size or 0,
        learning_rate=1.0 if one_step else train.learning_rate,
        epochs=work.epochs,
        steps=work.steps,
        drop_last=work.drop_last,
        optimiser="adam" if adam else "sgd",
        momentum=0.9 if not one_step and train.client_optimiser == "momentum" else 0.0,
        algorithm=train.algorithm,
        proximal=train.proximal,
        schedule=_schedule(train),
        num_rounds=train.num_rounds,
        kept=not one_step and train.optimiser_state == "kept",
        dropout=train.dropout,
    )


def _schedule(train: TrainConfig) -> tuple[float, ...]:
    if train.learning_rate_decay == 1 or train.algorithm == "fed_sgd":
        return ()
    return tuple((train.learning_rate_decay ** np.arange(train.num_rounds)).tolist())


def eavesdrop(
    setup: Setup, seen: Transcript, bars: Progress, sight: Sight = MESSAGES
) -> Adversary:
    """The adversary of every seed after the training.

    Args:
      setup: of the run.
      seen: leaves `[seeds, ...]`, of the server.
      bars: to show progress.
      sight: what is left of that.
    """
    seen = _cut(setup, seen, sight)
    messages = views.client_view(seen, range(setup.clients.sizes.shape[1]))
    each = []
    for seed in range(len(setup.config.run.seeds)):
        mine, places = jax.tree.map(lambda leaf, at=seed: leaf[at], (seen, messages))
        told = view(setup, seed, sight)
        each.append(told._replace(transcript=mine, messages=places))
    return Adversary(each, seen, messages, bars, sight)


def _cut(setup: Setup, seen: Transcript, sight: Sight) -> Transcript:
    """What an adversary sees of every seed's transcript, leaves `[seeds, ...]`."""
    if sight.view == "messages":
        return seen
    found = []
    for seed, one in enumerate(of_seeds(seen)):
        known = server(setup, seed)
        match sight.view:
            case "sum":
                found.append(sums.add_up(one, known, sight.sum_of))
            case "models":
                found.append(sums.models(one, known))
            case "final":
                found.append(sums.final(one, known))
    return sums.stacked(found)
