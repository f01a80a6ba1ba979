"""What `experiments.choose_defense` brings to the report."""

from experiments.aia.report import REPORT as AIA
from experiments.report.figures import selection
from fljax import verdicts

REPORT = AIA._replace(
    name="choose_defense",
    title="Which defense, and which epsilon",
    about=f"The same federation under a grid of defenses. {AIA.about}",
    kept=(
        verdicts.ACCURACY.metric,
        verdicts.CEILING,
        *selection.EXPLAINED,
        *selection.RIGHT,
        "epsilon_rdp",
        "client_epsilon_rdp",
        verdicts.ERROR.metric,
        "epsilon_audited",
    ),
)
