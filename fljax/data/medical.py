"""Medical Cost: 1338 insured persons, yearly charges in dollars, smokers inferred.

Lantz, "Machine Learning with R", 2013. Protocol of Diana et al., "Attribute Inference
Attacks for Federated Regression Tasks", 2025: the neural preset standardises the
dummies too and keeps charges in dollars; the linear preset takes logarithms. The one
repeated row is kept, as in the protocol.
"""

from fljax.data.csv_reader import read_csv
from fljax.data.fetch import fetch
from fljax.data.options import Preprocessing
from fljax.data.sources import MEDICAL
from fljax.data.table import Table

PRESETS = {
    "neural": Preprocessing(categorical="standardised_dummies"),
    "linear": Preprocessing(
        numeric="log1p_standardise",
        binary="zero_one",
        categorical="dummies",
        target="log_standardise",
    ),
}


def load(*, data_dir: str | None = None, sensitive: str | None = "smoker") -> Table:
    """Reads `insurance.csv`.

    Args:
      data_dir: folder of local copies.
      sensitive: the attribute that attacks infer.
    """
    file = fetch(MEDICAL, data_dir)
    return Table(
        name="medical",
        frame=read_csv(file.content, MEDICAL.filename),
        target="charges",
        kinds={
            "age": "numeric",
            "bmi": "numeric",
            "children": "numeric",
            "sex": "binary",
            "smoker": "binary",
            "region": "categorical",
        },
        sensitive=sensitive,
        task="regression",
        files=(file.record,),
    )
