"""What a report begins with: its title and, for each experiment in it, what it shows."""

from collections.abc import Iterable

from fljax.results import Row

_SEVERAL = "What federated training leaks, and what is promised"
# Experiment -> title where it is alone, and what it is about.
_BY_EXPERIMENT = {
    "aia": {
        "Attribute inference on federated training": (
            "An adversary sees what the clients of a federated training send and receive, "
            "knows all but one column of their training rows, and infers that column. "
            "Accuracy is the share of rows on which an attack names the right value, in "
            "percent: the mean over clients weighted by their rows, then over seeds, with "
            "the Student-t 95 % interval over the seeds. The majority baseline always "
            "names each client's most frequent value: an attack that does not exceed it "
            "has learned nothing."
        )
    },
    "accounting": {
        "Privacy accounting of federated training": (
            "Epsilons are computed from clipping, noise, sampling and number of steps, "
            "without any training: as the paper computes them, for what is implemented, "
            "and tightly for the recommended mode. Each rests on the assumptions that its "
            "card states."
        )
    },
    "fed_cdp": {
        "Accuracy and cost of per-example differential privacy": (
            "A federation is trained with and without noise on its clients' gradients or "
            "updates. Accuracy is the share of test images or rows whose class the last "
            "model names rightly, in percent; learning rates are chosen on other rows."
        )
    },
    "gradient_leakage": {
        "What gradients leak of training images": (
            "An adversary sees a client's message (types 0 and 1) or one example's "
            "gradient (type 2) and searches for the images that explain it. An attack "
            "succeeds if every image comes closer to the true one than a stated "
            "distance. Reconstruction distances are root mean squared errors of pixels "
            "in [0, 1], means over the attacked clients; the baselines are images that "
            "need no message."
        )
    },
    "label_distribution": {
        "What a message tells of a client's labels": (
            "An adversary sees the model that a client was sent and the delta that she "
            "returns, trains dummy clients of known label distributions on proxy rows, "
            "and predicts her label distribution from principal components of the delta. "
            "Total variation is half the summed distance of predicted to true shares, a "
            "mean over the attacked clients: 0 is a full leak. The baseline is the "
            "dummies' mean distribution, which needs no message; figures of clusters "
            "stand beside shuffled labels."
        )
    },
    "audit": {
        "Audit of a federated training": (
            "An adversary sees what the audited clients of a federated training send and "
            "receive, knows all but one column of their rows, and infers that column "
            "and what else the messages tell. Rows and transcript are those of whoever "
            "asked for the audit; the true column serves for scores only. Numbers are "
            "means over the clients, each of whom counts the same, with 95 % intervals "
            "over the clients, or over the rows of a single one."
        )
    },
    "lmra": {
        "What eavesdropped messages tell of a client's own model": (
            "An adversary who sees what clients are sent and what they return estimates "
            "the model that each would have trained alone. Accuracy is that of the "
            "decoded model on the client's own training rows, in percent, a mean over "
            "clients; beside it stand the model that she returned last, the global "
            "model, and her true local optimum."
        )
    },
}


def title(rows: Iterable[Row]) -> str:
    """Title of a report on these rows."""
    found = _found(rows)
    return next(iter(found)) if len(found) == 1 else _SEVERAL


def paragraphs(rows: Iterable[Row]) -> list[str]:
    """What each experiment among the rows is about."""
    return list(_found(rows).values())


def _found(rows: Iterable[Row]) -> dict[str, str]:
    names = {row.experiment for row in rows} & _BY_EXPERIMENT.keys() or {"aia"}
    found: dict[str, str] = {}
    for name, about in _BY_EXPERIMENT.items():
        if name in names:
            found |= about
    return found
