"""Figure 5 of Rajani et al. (2023): what some clients have, and what attacks say of them."""

from experiments.report import kept
from experiments.report.documents import writing
from fljax.driver.config import ConfigError

_SETTING, _LABEL = "example", ";label="
_WORDS = {
    "true": "has",
    "predictor": "predictor (Algorithm 1)",
    "last_layer": "rule of the last layer",
    "class_gradients": "class gradients",
    "fused": "all of it, weighed",
    "predictor_posterior": "all of it, and what is known before",
    "mean_distribution": "mean distribution",
}


def text(name: str) -> str:
    """A line for each client and attack of a kept result, a column for each label.

    Raises:
      ConfigError: the result has no such client.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in kept.read(name).rows:
        if row.setting == _SETTING:
            alpha, _, label = row.point.partition(_LABEL)
            found.setdefault((alpha, row.attack), {})[label] = row.value
    if not found:
        raise ConfigError(f"examples.{name}: expected clients that are examples")
    labels = list(next(iter(found.values())))
    body = [
        [alpha.replace("=", " = "), _WORDS.get(attack, attack)]
        + [f"{shares[label]:.0f}" for label in labels]
        for (alpha, attack), shares in found.items()
    ]
    return writing.table(["client", "share of each label, %", *labels], body, labels)
