"""What of a run an adversary gets: from here on nothing leads back to the truth."""

import jax
import numpy as np
from rich.progress import Progress

from experiments.aia import problem
from experiments.aia.adversary import Adversary
from experiments.aia.clients import outputs
from experiments.aia.settings import TrainConfig
from experiments.aia.setup import Setup
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.defenses import specs
from fljax.defenses.specs import Spec
from fljax.transcript import views
from fljax.types import Transcript


def view(setup: Setup, seed: int = 0) -> AdversaryView:
    """What the adversary of one seed has before the training.

    Args:
      setup: of the run, with a sensitive attribute.
      seed: position of the seed.
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
        defense=_defense(setup, seed) if config.attack.knows_defense else None,
    )


def _defense(setup: Setup, seed: int) -> Spec | None:
    """That of a seed, with the clip that was chosen for it."""
    shield = setup.problem.shield
    if shield is None:
        return None
    first = specs.alternatives(shield.spec)[0]
    chosen = [
        {name: float(v[seed]) for name, v in part.items() if name == "clip"}
        for part in shield.parts
    ]
    return specs.replaced(first, chosen)


def local_training(train: TrainConfig) -> LocalTraining:
    """How clients train; FedSGD is one step of rate 1 on all rows."""
    one_step = train.algorithm == "fed_sgd"
    adam = not one_step and train.client_optimiser == "adam"
    batch_size, epochs, steps = problem.local_work(train)
    return LocalTraining(
        batch_size=batch_size or 0,
        learning_rate=1.0 if one_step else train.learning_rate,
        epochs=epochs,
        steps=steps,
        optimiser="adam" if adam else "sgd",
        momentum=0.9 if not one_step and train.client_optimiser == "momentum" else 0.0,
        algorithm=train.algorithm,
        proximal=train.proximal,
    )


def eavesdrop(setup: Setup, seen: Transcript, bars: Progress) -> Adversary:
    """The adversary of every seed after the training.

    Args:
      setup: of the run.
      seen: leaves `[seeds, ...]`.
      bars: to show progress.
    """
    messages = views.client_view(seen, range(setup.clients.sizes.shape[1]))
    each = []
    for seed in range(len(setup.config.run.seeds)):
        mine, places = jax.tree.map(lambda leaf, at=seed: leaf[at], (seen, messages))
        each.append(view(setup, seed)._replace(transcript=mine, messages=places))
    return Adversary(each, seen, messages, bars)
