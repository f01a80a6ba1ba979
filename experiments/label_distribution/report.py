"""What `experiments.label_distribution` brings to the report."""

from experiments.report.program_report import Gain, ProgramReport
from fljax import verdicts

REPORT = ProgramReport(
    name="label_distribution",
    title="What a message tells of a client's labels",
    about="An adversary sees the model that a client was sent and the delta that it "
    "returns, trains shadow clients of known label distributions on proxy rows, and "
    "predicts the client's label distribution from principal components of the delta. "
    "Total variation is half the summed distance of predicted to true shares, a mean "
    "over the attacked clients: 0 is a full leak. Figures of clusters stand beside "
    "shuffled labels.",
    names={
        "mean_distribution": "no attack: the mean distribution of the shadow clients",
        "predictor": "Algorithm 1 of Rajani et al., 2023: a network that learned from "
        "shadow clients with the clients' defense",
        "predictor_unaware": "the same, from shadow clients without the defense",
        "simulated_path": "the client's expected local training, simulated on proxy "
        "rows as a function of its label distribution",
        "fused": "components of the same shadow clients and the closed forms, weighed "
        "together",
        "predictor_posterior": "the mean of what the same numbers leave open, given how clients "
        "differ before any message",
        "class_gradients": "closed form: the shares of the labels' mean gradients that "
        "make up the message",
        "last_layer": "closed form: the delta of the last layer's bias",
        "fedavg": "no attack: a federation trained with the defense",
        "pca": "two principal components of the messages",
        "shuffled_labels": "the same components with labels of other clients",
        "true": "no attack: the labels that clients have",
    },
    settings={
        "passive": "the adversary only eavesdrops",
        "closed_form": "the adversary eavesdrops, and trains no shadow clients",
        "baseline": "without any message",
        "clusters": "messages of one layer, or of all",
        "example": "one client of each concentration",
    },
    gains=(
        Gain(
            verdicts.DISTANCE,
            ("mean_distribution",),
            "nearer than",
            "further than",
        ),
    ),
)
