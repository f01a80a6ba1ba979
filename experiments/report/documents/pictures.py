"""Which curves the pictures of the documents are of."""

from experiments.report.documents import fed_cdp_pictures
from experiments.report.documents.curve_picture import Curve, Picture

_MAJORITY, _IMPUTATION = "most frequent value", "imputation"
_SEX = "People whose sex is read, PUMS 2016, %"
_SUMMED = "clients whose messages are summed (1: each client's own)"


def _over(point: str, lines: dict[str, tuple[str, str]], baselines: str) -> dict:
    """Name -> a line over a flag of the points, those of baselines last and dashed.

    Args:
      point: pattern of a point with x as its group.
      lines: name -> result and pattern of `attack setting`.
      baselines: the result that they are of.
    """
    found = {
        name: Curve((result,), f"{key} {point}")
        for name, (result, key) in lines.items()
    }
    return found | {
        name: Curve((baselines,), f"{key} baseline {point}", dashed=True)
        for name, key in ((_IMPUTATION, "imputation"), (_MAJORITY, "majority"))
    }


def _by_rows(result: str) -> dict:
    return _over(
        r"partition_rows=([\d.]+)",
        {
            "last message, model-based": (f"{result}.oracle", "model passive"),
            "last global model": (f"{result}.oracle", "model_global passive"),
            "gradients, best cosine": (result, "grad passive"),
            "the client's optimum (oracle)": (
                f"{result}.oracle", "model_oracle oracle"
            ),
            "all messages, trajectories": (f"{result}.oracle", "trajectory passive"),
        },
        f"{result}.oracle",
    )  # fmt: skip


def _over_flag(
    flag: str,
    ten: str = "active_10",
    fifty: str = "active_50",
) -> dict:
    """Figure 3: over a flag, whose points may have other active rounds."""
    return _over(
        rf"{flag}=([\d.]+)\b.*",
        {
            "last message, model-based": ("aia.fig3", "model passive"),
            "active, a tenth as many rounds": ("aia.fig3", f"model {ten}"),
            "active, half as many rounds": ("aia.fig3", f"model {fifty}"),
            "gradients, best cosine": ("aia.fig3.gradients", "grad passive"),
            "active, half, gradients": ("aia.fig3.gradients.active", f"grad {fifty}"),
        },
        "aia.fig3",
    )


def _summed(
    title: str,
    results: tuple[str, ...],
    points: str,
    some: dict[str, tuple[str, str, float]],
    low: float = 40,
) -> Picture:
    """What is read of sums, by how many clients are in them.

    Args:
      title: above it.
      results: of sums over those who take part, all in every round.
      points: pattern of their point.
      some: where not all take part, words -> result, point, and how many do, all of whom
        are in the sum.
      low: end of the vertical axis.
    """
    lines = {
        "all take part in each round": Curve(
            results, rf"trajectory sum_of_(\d+) {points}"
        ),
        **{
            said: Curve((result,), f"trajectory sum {point}.*", at=count)
            for said, (result, point, count) in some.items()
        },
        "other people": Curve(
            results, rf"trajectory_strangers sum_of_(\d+) {points}", dashed=True
        ),
        _MAJORITY: Curve(results[:1], f"majority baseline {points}"),
        _IMPUTATION: Curve(results[:1], f"imputation baseline {points}"),
    }
    return Picture(title, _SUMMED, lines, low=low, tick=(100 - low) / 6)


def _proved(observer: str, metric: str, *, dashed: bool = False) -> Curve:
    pattern = rf"{observer} \S+ epsilon=([\d.]+)"
    return Curve(("epsilon_audit.diabetes",), pattern, metric, dashed=dashed)


_PART = "half of them in a round"
_PUMS, _MEDICAL = "aia.sums.pums2016", "aia.sums.medical"
PICTURES = {
    "epsilon": Picture(
        "Epsilon audited, by the epsilon accounted (diabetes, DP-SGD)",
        "epsilon accounted for who sees messages",
        {
            "accounted": _proved("messages", "epsilon_accounted", dashed=True),
            "so many could prove": _proved(
                "messages", "epsilon_reachable", dashed=True
            ),
            "who sees messages": _proved("messages", "epsilon_audited"),
            "who sees sums of two clients": _proved("sum", "epsilon_audited"),
            "who sees the last model": _proved("final", "epsilon_audited"),
        },
        high=4, tick=1,
    ),
    "sums": _summed(
        "Patients whose sex is read from sums of ten clients' messages, %",
        ("aia.sums.diabetes.clients",), "sum_of=.*",
        {
            _PART: ("aia.sums.diabetes.clients", "fraction=0.5", 5),
            "a fifth": ("aia.sums.diabetes.clients", "fraction=0.2", 2),
        },
    ),
    "sums_medical": _summed(
        "Smokers and others told from sums of thirty clients' messages, %",
        (f"{_MEDICAL}.clients",), "partition_clients=30",
        {
            _PART: (f"{_MEDICAL}.participation", "participation=uniform", 15),
            "a tenth": (f"{_MEDICAL}.participation", "fraction=0.1", 3),
        },
        low=70,
    ),
    "sums_pums2016": _summed(
        "People whose sex is read from sums of ten clients' messages, PUMS 2016, %",
        (_PUMS, f"{_PUMS}.larger"), "none",
        {
            _PART: (f"{_PUMS}.participation", "fraction=0.5", 5),
            "a tenth": (f"{_PUMS}.participation", "fraction=0.1", 1),
        },
    ),
    "fig1": Picture(
        _SEX, "rows of each of four clients", _by_rows("aia.fig1"), low=40, tick=10
    ),
    "fig1_classification": Picture(
        "People whose sex is read, PUMS 2016, of a classifier, %",
        "rows of each of four clients", _by_rows("aia.fig1.classification"),
        low=40, tick=10,
    ),
    "fig3_heterogeneity": Picture(
        _SEX, "heterogeneity of ten clients", _over_flag("partition_heterogeneity"),
        low=40, tick=10, logarithmic=False,
    ),
    "fig3_batches": Picture(
        _SEX, "rows of a batch", _over_flag("batch_size"), low=40, tick=10
    ),
    "fig3_epochs": Picture(
        _SEX, "local epochs, in fewer rounds",
        _over_flag(
            "local_epochs",
            r"active_(?:10(?=.*=1\b)|[2-5])",
            r"active_(?:50|25|17|13|10(?=.*=5\b))",
        ),
        low=40, tick=10, logarithmic=False,
    ),
    "fig5": Picture(
        _SEX, "round in which the active attack starts",
        _over(
            r"active_start=([\d.]+)\b.*",
            {
                "active server, model-based": ("aia.fig5", "model active_50"),
                "active server, gradients": ("aia.fig5.gradients", "grad active_50"),
            },
            "aia.fig5",
        ),
        low=40, tick=10, logarithmic=False,
    ),
    "fig6": Picture(
        _SEX, "rounds in which the server is active",
        {
            "active server, model-based": Curve(
                ("aia.fig6",), r"model active_(\d+) .*"
            ),
            "active server, gradients": Curve(
                ("aia.fig6.gradients",), r"grad active_(\d+) .*"
            ),
            "passive, last message": Curve(("aia.fig6",), "model passive .*"),
            _IMPUTATION: Curve(("aia.fig6",), "imputation baseline .*"),
            _MAJORITY: Curve(("aia.fig6",), "majority baseline .*"),
        },
        low=40, tick=10, logarithmic=False,
    ),
} | fed_cdp_pictures.PICTURES  # fmt: skip
