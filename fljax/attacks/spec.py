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


def apply(
    spec: AttackSpec, view: AdversaryView, settings: Hashable = None
) -> Estimates:
    """Runs an attack, or says why it does not apply.

    Args:
      spec: the attack.
      view: what the adversary has.
      settings: in place of the attack's own.

    Raises:
      AnswerError: what it gives back cannot be scored.
    """
    chosen = spec.settings if settings is None else settings
    if why := needs_lib.missing(spec.needs, view, chosen):
        return {spec.name: NotApplicable(why)}
    return answers.checked(spec.name, view, spec.run(view, chosen))
