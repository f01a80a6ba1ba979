"""What `experiments.choose_defense` brings to the report."""

from experiments.aia.report import REPORT as AIA

REPORT = AIA._replace(
    name="choose_defense",
    title="Which defense, and which epsilon",
    about=f"The same federation under a grid of defenses. {AIA.about}",
)
