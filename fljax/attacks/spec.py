"""What a registered attack is."""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from fljax.attacks import answers
from fljax.attacks import needs as needs_lib
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.estimates import Estimates, NotApplicable, Prediction
from fljax.attacks.needs import Needs


class AttackSpec(NamedTuple):
    """An attack on all clients of a view.

    Attributes:
      name: how it is asked for.
      needs: what must be so.
      run: `(view, settings) -> name -> Estimate`; most attacks give one, of their name.
      settings: the default ones, hashable; None for an attack without.
      gives: what its estimates are.
      group: a name under which several attacks are asked for together.
    """

    name: str
    needs: Needs
    run: Callable[[AdversaryView, Any], Estimates]
    settings: Hashable = None
    group: str = ""
    gives: type = Prediction


def check_settings(spec: AttackSpec, settings: Any) -> None:
    """Settings are of the kind that the attack's own are; None stands for those.

    Raises:
      ValueError: they are not, or the attack has none.
    """
    kind = type(spec.settings)
    if settings is None or isinstance(settings, kind):
        return
    wanted = f"a {kind.__module__}.{kind.__qualname__}"
    if spec.settings is None:
        wanted = "none, for it has no settings"
    got = type(settings).__name__
    raise ValueError(f"of {spec.name!r} expected {wanted}, got {got}")


def apply(
    spec: AttackSpec, view: AdversaryView, settings: Hashable = None
) -> Estimates:
    """Runs an attack, or says why it does not apply.

    Args:
      spec: the attack.
      view: what the adversary has; the attack cannot write to it.
      settings: in place of the attack's own.

    Raises:
      ValueError: the settings are not this attack's.
      AnswerError: what it gives back cannot be scored.
    """
    check_settings(spec, settings)
    if settings is None:
        settings = spec.settings
    if why := needs_lib.missing(spec.needs, view, settings):
        return {spec.name: NotApplicable(why)}
    return answers.checked(spec.name, view, spec.run(view.read_only(), settings))
