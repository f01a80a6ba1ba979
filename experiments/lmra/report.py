"""What `experiments.lmra` brings to the report."""

from experiments.lmra import published
from experiments.report.program_report import Gain, ProgramReport
from fljax import verdicts

REPORT = ProgramReport(
    name="lmra",
    title="What eavesdropped messages tell of a client's own model",
    about="An adversary who sees what clients are sent and what they return estimates "
    "the model that each would have trained alone. Accuracy is that of the decoded model "
    "on the client's own training rows, in percent, a mean over clients.",
    names={
        "last_returned": "no decoding: the last model that the client returned",
        "global": "no decoding: the server's last model",
        "decoded": "Algorithm 3 of Xu & Neglia, 2021, with their multilayer perceptron",
        "decoded_affine": "the same with an affine mapping, by one regression",
        "decoded_simulated": "the same with a simulated client of learned rows",
        "local_optimum": "the client's true local optimum, which no adversary has",
        "majority": "no model: always the client's most frequent label",
    },
    gains=(
        Gain(
            verdicts.Measure(
                published.METRIC, 1, 1.0, "% accuracy on the client's own rows"
            ),
            ("last_returned", "majority"),
            "points beyond",
            "points short of",
            attacks="decoded",
        ),
    ),
    reference=published.reference,
)
