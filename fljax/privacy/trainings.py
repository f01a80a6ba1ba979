"""All that is said of one training: as printed, as implemented, recommended, refused."""

from fljax.privacy import fed_cdp, fed_sdp
from fljax.privacy.statements import Statement, Training

METHODS = ("fed_cdp", "fed_sdp")


def statements(method: str, told: Training) -> list[Statement]:
    """Every statement about a training, of records and of clients.

    Args:
      method: one of `METHODS`.
      told: the training.

    Raises:
      ValueError: for another method.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    return _fed_cdp(told) if method == "fed_cdp" else _fed_sdp(told)


def _fed_cdp(told: Training) -> list[Statement]:
    both = [True] if told.batches == "without_replacement" else [True, False]
    copies = told.copies > 1 and told.batches != "without_replacement"
    return [
        fed_cdp.printed(told),
        fed_cdp.printed_client(told),
        *(fed_cdp.implemented(told, every=every) for every in both),
        *([fed_cdp.copied(told)] if copies else []),
        *(fed_cdp.example(told, replace=replace) for replace in (False, True)),
        *(fed_cdp.implemented_client(told, rounds=rounds) for rounds in _spans(told)),
        *(fed_cdp.recommended(told, every=every) for every in (True, False)),
        *(fed_cdp.recommended_client(told, rounds=rounds) for rounds in _spans(told)),
        *fed_cdp.refused(told),
    ]


def _fed_sdp(told: Training) -> list[Statement]:
    return [
        fed_sdp.printed(told),
        fed_sdp.implemented(told),
        fed_sdp.fixed_size(told),
        fed_sdp.messages(told),
        fed_sdp.record(told),
        fed_sdp.recommended(told),
        fed_sdp.recommended_record(told),
        *fed_sdp.refused(told),
    ]


def _spans(told: Training) -> list[int]:
    """One round, and all of them where there are more."""
    return [1, told.rounds] if told.rounds > 1 else [1]
