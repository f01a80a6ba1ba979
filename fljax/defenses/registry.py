"""Defenses by name: one line for each."""

from fljax.defenses import bounding, dp_sgd, fed_cdp, fed_sdp, median, noise, pruning
from fljax.defenses.definition import Definition

DEFENSES: dict[str, Definition] = {
    "dp_sgd": dp_sgd.DEFINITION,
    "fed_cdp": fed_cdp.DEFINITION,
    "fed_sdp": fed_sdp.DEFINITION,
    "median": median.DEFINITION,
    "gaussian": noise.GAUSSIAN,
    "laplace": noise.LAPLACE,
    "norm_clipping": bounding.NORM,
    "value_clipping": bounding.VALUE,
    "pruning": pruning.PRUNING,
    "dssgd": pruning.DSSGD,
}
