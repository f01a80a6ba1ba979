"""All that is said of one training: as printed, as implemented, recommended, refused."""

from fljax.privacy import fed_cdp, fed_sdp
from fljax.privacy.statements import Statement, Training

METHODS = ("fed_cdp", "fed_sdp")


def statements(method: str, training: Training) -> list[Statement]:
    """Every statement about a training, of records and of clients.

    Args:
      method: one of `METHODS`.
      training: what is accounted for.

    Raises:
      ValueError: for another method.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    return _fed_cdp(training) if method == "fed_cdp" else _fed_sdp(training)


def _fed_cdp(training: Training) -> list[Statement]:
    both = [True] if training.batches == "without_replacement" else [True, False]
    copies = training.copies > 1 and training.batches != "without_replacement"
    return [
        fed_cdp.printed(training),
        fed_cdp.printed_client(training),
        *(fed_cdp.implemented(training, every=every) for every in both),
        *([fed_cdp.copied(training)] if copies else []),
        *(fed_cdp.example(training, replace=replace) for replace in (False, True)),
        *(
            fed_cdp.implemented_client(training, rounds=rounds)
            for rounds in _spans(training)
        ),
        *(fed_cdp.recommended(training, every=every) for every in (True, False)),
        *(
            fed_cdp.recommended_client(training, rounds=rounds)
            for rounds in _spans(training)
        ),
        *fed_cdp.refused(training),
    ]


def _fed_sdp(training: Training) -> list[Statement]:
    independent = training.participants == "poisson"
    return [
        fed_sdp.printed(training),
        *([fed_sdp.implemented(training)] if independent else []),
        fed_sdp.fixed_size(training),
        fed_sdp.messages(training),
        *([fed_sdp.record(training)] if independent else []),
        fed_sdp.recommended(training),
        fed_sdp.recommended_record(training),
        *fed_sdp.refused(training),
    ]


def _spans(training: Training) -> list[int]:
    """One round, and all of them where there are more."""
    return [1, training.rounds] if training.rounds > 1 else [1]
