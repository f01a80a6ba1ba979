"""What `experiments.aia` brings to the report.

Equations and algorithms are those of Diana et al., "Attribute Inference Attacks for
Federated Regression Tasks", 2025.
"""

from experiments.aia import published
from experiments.report.program_report import Gain, ProgramReport
from fljax import verdicts

NAMES = {
    "majority": "no attack: always the most frequent value of each client (its median "
    "for a number)",
    "imputation": "no attack: the most probable value given the other columns, learned "
    "from held-out rows and those of other clients",
    "model": "model-based (equation 3): the value under which the last model that the "
    "client returned has the smaller loss",
    "model_global": "the same on the last model that the server sent",
    "model_forged": "the same on the model that an active server has forged last and "
    "sends no more; model is on what the client answered to the one before",
    "model_oracle": "the same on a model trained on this client's true rows alone, "
    "which no adversary has",
    "model_oracle_or_active": "seed by seed the more accurate of model_oracle and the "
    "longest active attack, which the paper's oracle equals in some columns",
    "grad": "gradient-based (equation 2): values whose gradients match the messages; "
    "its setting is chosen by their similarity",
    "grad_oracle": "the same with the setting that turned out most accurate, which no "
    "adversary knows",
    "reconstruct": "Algorithm 2: the client's least-squares model from all its "
    "messages, then model-based on it",
    "reconstruct_subset": "Algorithm 2 as the authors run it: on as many messages as "
    "make a square system",
    "trajectory": "simulates the client's training with unknown values and fits it to "
    "its messages over many rounds",
    "true_rows": "no attack: how well the clients' rows as they are explain their messages",
    "linear_inversion": "the first-order version of trajectory",
    "inversion": "rebuilds whole rows from a message that is one gradient of few rows",
    "mean_distribution": "no attack: the mean label distribution of the shadow clients",
    "predictor": "Algorithm 1 of Rajani et al., 2023: a network that learned label "
    "distributions from shadow clients with the clients' defense",
    "predictor_posterior": "the mean of what the same shadow clients and the closed form leave "
    "open, given how clients differ before any message",
    "simulated_path": "the client's expected local training, simulated on proxy rows "
    "as a function of its label distribution",
    "class_gradients": "closed form: the shares of the labels' mean gradients that "
    "make up the message",
    "last_layer": "closed form: the delta of the last layer's bias",
}
SETTINGS = {
    "passive": "the adversary only eavesdrops",
    "active_": "the server sends forged models to the client for so many rounds",
    "oracle": "with knowledge that no adversary has",
    "baseline": "without any message",
    "rows_": "without any message, learned from so many rows",
}

_REFERENCES = (verdicts.MAJORITY, verdicts.IMPUTATION, "{attack}_strangers")

REPORT = ProgramReport(
    name="aia",
    title="Attribute inference on federated training",
    about="An adversary sees what the clients of a federated training send and receive, "
    "knows all but one column of their training rows, and infers that column. Accuracy "
    "is the share of rows on which an attack names the right value, in percent: the mean "
    "over clients weighted by their rows, then over seeds, with the Student-t 95 % "
    "interval over the seeds; that of a single seed is Wilson's over the rows.",
    names=NAMES,
    settings=SETTINGS,
    gains=(
        Gain(
            verdicts.ACCURACY,
            _REFERENCES,
            "points beyond",
            "points short of",
            own_rows=True,
        ),
        Gain(verdicts.ERROR, _REFERENCES, "less error than", "more error than"),
    ),
    strongest=("trajectory", "linear_inversion", "reconstruct"),
    reference=published.of_run,
)
