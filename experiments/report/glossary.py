"""What the names of attacks and settings mean, for a reader who meets them first here.

Equations and algorithms are those of Diana et al., "Attribute Inference Attacks for
Federated Regression Tasks", 2025.
"""

from collections.abc import Iterable

from fljax.results import Row

_ATTACKS = {
    "majority": "no attack: always the most frequent value of each client (for a "
    "continuous attribute her median)",
    "model": "model-based (equation 3): the value under which the last model that the "
    "client returned has the smaller loss",
    "model_global": "the same on the last model that the server sent",
    "model_forged": "the same on the model that an active server forged and sent",
    "model_oracle": "the same on a model trained on this client's true rows alone, "
    "which no adversary has",
    "model_oracle_or_active": "seed by seed the more accurate of model_oracle and the "
    "longest active attack; the paper's oracle equals the latter to the last digit",
    "model_other": "control: model-based on another client's model",
    "grad": "gradient-based (equation 2): values whose gradients match the messages; "
    "its setting is chosen by their similarity",
    "grad_oracle": "the same with the setting that turned out most accurate, which no "
    "adversary knows",
    "reconstruct": "Algorithm 2: the client's least-squares model from all her "
    "messages, then model-based on it",
    "reconstruct_subset": "Algorithm 2 as the authors run it: on as many messages as "
    "make a square system",
    "trajectory": "simulates the client's training with unknown values and fits it to "
    "her messages over many rounds",
    "trajectory_other": "control: trajectory on another client's messages",
    "trajectory_permuted": "control: trajectory with the targets shuffled",
    "linear_inversion": "the first-order version of trajectory",
    "inversion": "rebuilds whole rows from a message that is one gradient of few rows",
    "predictor": "Algorithm 1 of Rajani et al., 2023: a network that learned from "
    "dummy clients with the clients' defense",
    "predictor_unaware": "the same, from dummies without the defense",
    "class_gradients": "closed form: the shares of the labels' mean gradients that "
    "make up the message",
    "last_layer": "closed form: the delta of the last layer's bias",
    "mean_distribution": "no attack: the mean distribution of the dummies",
    "pca": "two principal components of the messages",
    "shuffled_labels": "the same components with labels of other clients",
    "last_returned": "no decoding: the last model that the client returned",
    "global": "no decoding: the server's last model",
    "decoded": "Algorithm 3 of Xu & Neglia, 2021, with their multilayer perceptron",
    "decoded_affine": "the same with an affine mapping, by one regression",
    "decoded_simulated": "the same with a simulated client of learned rows",
    "local_optimum": "the client's true local optimum, which no adversary has",
    "fed_cdp": "defense: clipping and noise on each example (Wei et al., 2021)",
    "fed_sdp": "defense: clipping and noise on each client's update (Wei et al., 2021)",
}
CONTROLS = ("model_other", "trajectory_other", "trajectory_permuted")
_SETTINGS = {
    "passive": "the adversary only eavesdrops",
    "active_": "the server sends forged models to the client for so many rounds",
    "closed_form": "the adversary eavesdrops, and trains no dummies",
    "oracle": "with knowledge that no adversary has",
    "baseline": "without any message",
    "printed": "epsilon as the paper computes it",
    "implemented": "epsilon of what is done: its sensitivity, noise and sampling",
    "recommended": "epsilon where all layers together are clipped to C, one draw of noise "
    "is on the sum, and samples are Poisson",
}


def terms(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Names that occur in the rows with what they mean, attacks first."""
    names = {(row.attack, row.setting) for row in rows}
    attacks = {attack for attack, _ in names}
    found = [(name, said) for name, said in _ATTACKS.items() if name in attacks]
    for name, said in _SETTINGS.items():
        if any(setting.startswith(name) for _, setting in names):
            found.append((f"{name}k" if name.endswith("_") else name, said))
    return found
