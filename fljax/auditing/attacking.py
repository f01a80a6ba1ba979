"""Which attacks are run, and what they estimate; none has the truth."""

import contextlib
import functools
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

import numpy as np

from fljax.attacks import registry, spec
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.answers import AnswerError
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.spec import AttackSpec
from fljax.auditing import imported
from fljax.driver.config import ConfigError

Stage = Callable[[str], contextlib.AbstractContextManager[None]]


def names(attacks: object) -> list[str]:
    """Names of attacks, and of specs theirs, as a flag has them.

    Raises:
      ConfigError: they are no list of such.
    """
    if isinstance(attacks, str | AttackSpec) or not isinstance(attacks, Collection):
        got = repr(attacks) if isinstance(attacks, str) else type(attacks).__name__
        raise ConfigError(f"--attacks: expected a list of names, got {got}")
    for each in attacks:
        if not isinstance(each, str | AttackSpec):
            raise ConfigError(
                "--attacks: expected names and AttackSpec objects, got one of "
                f"{type(each).__name__}"
            )
    return [each.name if isinstance(each, AttackSpec) else each for each in attacks]


def chosen(names: Sequence[str | AttackSpec]) -> list[AttackSpec]:
    """The attacks that are asked for: those of the registry, then the user's own.

    Args:
      names: of attacks or groups of the registry, `package.module:attribute`, or specs.

    Raises:
      ConfigError: there is none, or none of a name, or two of one name.
    """
    if not names:
        raise ConfigError("--attacks: expected at least one")
    known, own = [], []
    for name in names:
        if isinstance(name, AttackSpec):
            own.append(imported.judged("--attacks", name))
        elif ":" in name:
            own.append(imported.attack("--attacks", name))
        else:
            known.append(name)
    try:
        found = registry.find(known) + own
    except ValueError as error:
        raise ConfigError(f"--attacks: {error}") from error
    if len({each.name for each in found}) < len(found):
        raise ConfigError("--attacks: two attacks have the same name")
    return found


def check_settings(settings: object, attacks: Sequence[AttackSpec]) -> None:
    """Settings are of attacks that there are, asked for or not, and of their kind.

    Raises:
      ConfigError: they are not.
    """
    if not isinstance(settings, Mapping):
        got = type(settings).__name__
        raise ConfigError(f"--settings: expected attack -> its settings, got {got}")
    known = registry.ATTACKS | {each.name: each for each in attacks}
    for name, given in settings.items():
        if name not in known:
            raise ConfigError(
                f"--settings: expected some of {', '.join(sorted(known))}, got {name!r}"
            )
        try:
            spec.check_settings(known[name], given)
        except ValueError as error:
            raise ConfigError(f"--settings: {error}") from error


def estimates(
    view: AdversaryView,
    attacks: Sequence[AttackSpec],
    settings: Mapping[str, Hashable],
    stage: Stage,
    keep: Callable[[str, Callable[[], Estimates]], Estimates],
) -> Estimates:
    """What every attack estimates, or why it does not apply.

    Args:
      view: what the adversary has.
      attacks: from `chosen`.
      settings: by the name of an attack, in place of its own.
      stage: takes the time of an attack.
      keep: `(name, compute)`, returns what `compute` does or did before.

    Raises:
      ConfigError: an attack gives back what cannot be scored, or another one gave.
    """
    found: Estimates = {}

    def compute(each: AttackSpec) -> Estimates:
        try:
            answer = spec.apply(each, view, settings.get(each.name))
        except AnswerError as error:
            raise ConfigError(f"--attacks: {error}") from error
        if twice := sorted(found.keys() & answer.keys()):
            raise ConfigError(f"--attacks: two attacks give {twice[0]!r}")
        return _plain(answer, _setting(view))

    for each in attacks:
        with stage(each.name):
            found |= keep(each.name, functools.partial(compute, each))
    return found


def on_control(
    name: str,
    view: AdversaryView | None,
    attacks: Sequence[AttackSpec],
    settings: Mapping[str, Hashable],
    stage: Stage,
    keep: Callable[[str, Callable[[], Estimates]], Estimates],
) -> dict[str, Prediction]:
    """What the same attacks say of rows that the messages do not tell of.

    Args:
      name: of the control.
      view: of these rows, None where there are none.
      attacks, settings, stage, keep: as in `estimates`; only those that speak of the
        sensitive column are run.
    """
    if view is None:
        return {}
    chosen = [each for each in attacks if each.gives is Prediction]
    found = estimates(
        view,
        chosen,
        settings,
        lambda attack: stage(f"{attack}, {name}"),
        lambda attack, compute: keep(f"{attack}_{name}", compute),
    )
    return {k: each for k, each in found.items() if isinstance(each, Prediction)}


def _setting(view: AdversaryView) -> str:
    """What was seen; of sums, unless they are of all whom any holds, of how many."""
    seen = view.transcript
    if view.sees != "sum" or seen is None or seen.member is None:
        return view.sees
    counts = (np.asarray(seen.member) >= 0).sum(axis=-1)
    least, most = counts[counts > 0].min(initial=counts.max()), counts.max()
    if least > 1 and least == len(np.unique(seen.member[seen.member >= 0])):
        return view.sees
    return f"sum_of_{least}" if least == most else f"sum_of_{least}_to_{most}"


def _plain(found: Estimates, sees: str) -> Estimates:
    """Without what nobody reads; the setting is what was seen, `passive` of all."""
    return {
        name: each._replace(
            diagnostics=dict(each.diagnostics),
            setting=each.setting if sees == "messages" else sees,
            details={
                what: np.asarray(value)
                for what, value in each.details.items()
                if what == "probability"
            },
        )
        if isinstance(each, Prediction)
        else each
        for name, each in found.items()
    }
