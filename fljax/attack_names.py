"""What the name of an attack says of it: whether its result may be called a leak."""

_SETTINGS = {"baseline", "oracle"}
# Words of names.
_CHOSEN_WITH_THE_TRUTH = {"oracle", "optimum"}
_CONTROLS = {"other", "others", "permuted", "shuffled", "strangers"}
_POPULATION = {"majority", "imputation", "global"}
_UNJUDGED = _CHOSEN_WITH_THE_TRUTH | _CONTROLS | _POPULATION


def is_judged(attack: str, setting: str) -> bool:
    """Whether an adversary could run an attack, and means to gain by it.

    What was chosen or trained with the truth is not judged, nor are controls and what
    needs no message of a client. Names say it: `grad_oracle`, `local_optimum`,
    `model_other`, `model_global`, `trajectory_strangers`.

    Example:
      >>> is_judged("trajectory", "passive"), is_judged("model_global", "passive")
      (True, False)
    """
    unjudged = _UNJUDGED.intersection(attack.split("_"))
    return setting not in _SETTINGS and not unjudged


def check(attack: str) -> None:
    """Refuses a name for an attack that says that no verdict is given.

    Raises:
      ValueError: it does.
    """
    if not is_judged(attack, "passive"):
        raise ValueError(
            f"{attack!r}: expected a name without the words that say that an attack is a "
            f"control or had the truth: {', '.join(sorted(_UNJUDGED))}"
        )
