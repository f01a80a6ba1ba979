"""Model-based attacks of a run: with which model, on whom, and how well they did.

The models are the client's last one, the last global one, and, for linear regression,
the reconstructed and the true local optimum. Guesses come from `passive`, which has no
truth; what is computed here with the truth is only the score and the ceiling.
"""

from typing import NamedTuple

import jax
import numpy as np

from experiments import passive, scoring
from experiments.clients import Clients
from experiments.federation import Problem
from experiments.settings import AttackConfig
from fljax import losses
from fljax.attacks.attribute import complete
from fljax.results import Row
from fljax.types import Batch, Known, Params


class Victims(NamedTuple):
    """Whom the models are used against.

    Attributes:
      problem: model and loss.
      known: leaves `[seeds, C, n, ...]`, what the adversary has.
      goal: the truth, for scoring.
      candidates: `[seeds, K, W]` encoded values.
      kind: of the attribute.
      linear: whether the model is a linear regression.
      pooled: whether `known` and `goal` are all clients' rows for everyone.
      attacker: the compiled attack.
      labels: of the result rows.
    """

    problem: Problem
    known: Known
    goal: scoring.Target
    candidates: np.ndarray
    kind: str
    linear: bool
    pooled: bool
    attacker: passive.Attacker
    labels: scoring.Labels


def attack(victims: Victims, name: str, setting: str, params: Params) -> list[Row]:
    """Attacks every client with her model, leaves `[seeds, C, ...]`, and scores it.

    Beside every result of a linear regression stands Proposition 1's bound.
    """
    guess = victims.attacker(params, victims.known, victims.candidates)
    rows = scoring.guesses(victims.labels, name, setting, guess, victims.goal)
    if victims.linear and victims.kind == "binary":
        (layer,) = params.values()
        # The sensitive column is the last numeric one.
        last = victims.known.public.numeric.shape[-1]
        weight = np.asarray(layer["kernel"])[..., last, 0]
        gap = victims.candidates[:, 1] - victims.candidates[:, 0]
        rows += scoring.bounds(
            victims.labels,
            name,
            setting,
            weight,
            np.broadcast_to(gap, weight.shape),
            mean_loss(victims, params),
            victims.goal,
        )
    return rows


def mean_loss(victims: Victims, params: Params) -> np.ndarray:
    """Loss `[seeds, C]` of each model on its victim's true rows."""
    truth = victims.goal.truth
    if victims.kind == "continuous":
        block = truth[..., None]
    else:
        block = np.stack(
            [values[index] for values, index in zip(victims.candidates, truth)]
        )

    def one(params, known, block):
        batch = Batch(complete(known.public, block), known.y, known.mask)
        return losses.batch_loss(victims.problem.loss_fn, params, batch)

    each = jax.jit(jax.vmap(jax.vmap(one)))
    return np.asarray(each(params, victims.known, block))


def reconstruct(
    victims: Victims,
    clients: Clients,
    transcript,
    box: passive.Inbox,
    config: AttackConfig,
) -> list[Row]:
    """Algorithm 2, the authors' variant of it, and the true local optimum."""
    sent, delta, unflatten = passive.flat_messages(transcript, box)
    found = {
        "reconstruct": passive.linear_reconstruction(sent, delta),
        "reconstruct_subset": passive.subset_reconstruction(
            sent, delta, victims.labels.seeds, config
        ),
    }
    best = local_optima(clients, unflatten)
    rows = []
    for name, estimate in found.items():
        params = unflatten(estimate.estimate)
        rows += attack(victims, name, "passive", params)
        rows += _describe(victims, clients, name, params, best)
        for metric, values in (
            ("rank", estimate.rank),
            ("determined", estimate.determined),
        ):
            rows += scoring.by_client(
                victims.labels, name, "passive", metric, values * 1.0, victims.goal
            )
    rows += attack(victims, "model_oracle", "oracle", best)
    return rows


def local_optima(clients: Clients, unflatten) -> Params:
    """Least squares on each client's own rows in float64; leaves `[seeds, C, ...]`."""
    dataset = clients.datasets[0]
    x = clients.rows.x
    onehot = np.eye(dataset.num_onehot + 1)[:, : dataset.num_onehot]
    flat = []
    for seed, sizes in enumerate(clients.sizes):
        design = np.concatenate(
            [
                np.ones((x.numeric.shape[1], 1)),  # the bias is the first leaf
                x.numeric[seed],
                onehot[x.codes[seed]].sum(axis=1),
            ],
            axis=1,
        )
        parts = np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])
        flat.append(
            [
                np.linalg.lstsq(design[rows], clients.rows.y[seed][rows].astype(float))[
                    0
                ]
                for rows in parts
            ]
        )
    return unflatten(np.array(flat))


def _describe(victims, clients, name, params, best) -> list[Row]:
    """Distances of an estimate and, where rows are pooled, its loss on them."""
    numbers = {"optimum_distance": _distance(params, best)}
    true = clients.datasets[0].table.parameters
    if true:
        generating = {
            "bias": np.reshape(true["bias"], (1,)),
            "kernel": np.reshape(true["weights"], (-1, 1)),
        }
        numbers["parameter_distance"] = _distance(params, {"_": generating})
    if victims.pooled:
        numbers["pooled_loss"] = mean_loss(victims, params)
    rows = []
    for metric, values in numbers.items():
        rows += scoring.by_client(
            victims.labels, name, "passive", metric, values, victims.goal
        )
    return rows


def _distance(params, other) -> np.ndarray:
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(other), strict=True)
    squares = (np.square(np.asarray(a, np.float64) - b) for a, b in pairs)
    return np.sqrt(sum(s.reshape(*s.shape[:2], -1).sum(axis=-1) for s in squares))
