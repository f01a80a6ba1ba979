"""All attacks by name. A new one is a file with an `AttackSpec`, and a line here.

Code that is not part of fljax registers its own:

    registry.register(AttackSpec("mine", Needs(categorical=True), run, Settings()))

and every program that takes its attacks from here has it.
"""

from collections.abc import Sequence

from fljax import attack_names
from fljax.attacks.attribute import gradient_grid, last_model
from fljax.attacks.inversion import first_message as inversion
from fljax.attacks.label_distribution import first_message, last_layer, simulated_path
from fljax.attacks.reconstruction import local_optimum
from fljax.attacks.spec import AttackSpec
from fljax.attacks.trajectory import clients as trajectory

ATTACKS: dict[str, AttackSpec] = {
    spec.name: spec
    for spec in (
        last_model.SPEC,
        gradient_grid.SPEC,
        trajectory.FIRST_ORDER,
        trajectory.SPEC,
        local_optimum.SPEC,
        last_layer.SPEC,
        first_message.CLASS_GRADIENTS,
        first_message.PREDICTOR,
        simulated_path.SPEC,
        inversion.SPEC,
    )
}


def register(spec: AttackSpec) -> None:
    """Adds an attack.

    Raises:
      ValueError: there is one of this name, or a group of this name; or its name says that
        it is not judged (`attack_names.is_judged`).
    """
    attack_names.check(spec.name)
    if spec.name in names():
        raise ValueError(f"attack {spec.name!r} is there already")
    ATTACKS[spec.name] = spec


def names() -> list[str]:
    """All that `find` knows: attacks and, before their members, groups."""
    known = dict.fromkeys(
        name for spec in ATTACKS.values() for name in (spec.group, spec.name) if name
    )
    return list(known)


def find(chosen: Sequence[str]) -> list[AttackSpec]:
    """The attacks of these names or groups, each once, in the order of the registry.

    Raises:
      ValueError: one is not known.
    """
    for name in chosen:
        if name not in names():
            raise ValueError(f"unknown attack {name!r}; known: {', '.join(names())}")
    return [s for s in ATTACKS.values() if s.name in chosen or s.group in chosen]
