"""What a definition builds; of one's own, errors are called by the defense's name."""

from typing import Any

from fljax import tree
from fljax.defenses.definition import Definition, Setting, check_built
from fljax.defenses.parts import SpecError
from fljax.types import Defense


def built(
    name: str, known: Definition, setting: Setting, values: dict[str, Any]
) -> Defense:
    """What `build` makes, checked.

    Args:
      name: in the registry, or `module:attribute`.
      known: its definition.
      setting: the training.
      values: of all parameters.

    Raises:
      ValueError: of a registered one, as it says.
      SpecError: one's own does not build, or, when it is traced, one of its functions
        stops or returns something of another form; the message is one line.
    """
    try:
        made = known.build(setting, **values)
    except Exception as error:
        if ":" not in name:
            raise
        raise _blamed(name, "build", error) from error
    try:
        check_built(known, made)
    except TypeError as error:
        raise SpecError(f"{name}: {error}") from error
    return _guarded(name, made) if ":" in name else made


def _guarded(name: str, made: Defense) -> Defense:
    """The same, with errors that say whose they are."""

    def gradient(key, params, batch):
        try:
            assert made.gradient is not None
            found = made.gradient(key, params, batch)
            return tree.of_batch(found, params)
        except Exception as error:  # of somebody's function
            raise _blamed(name, "gradient", error) from error

    def message(seam):
        def call(key, delta, sender):
            try:
                return tree.of_form(
                    seam, getattr(made, seam)(key, delta, sender), delta
                )
            except Exception as error:
                raise _blamed(name, seam, error) from error

        return call

    return made._replace(
        gradient=made.gradient and gradient,
        encode=made.encode and message("encode"),
        receive=made.receive and message("receive"),
    )


def _blamed(name: str, seam: str, error: Exception) -> SpecError:
    text = " ".join(str(error).split())
    if not (isinstance(error, ValueError) and text.startswith(f"{seam}: ")):
        text = f"{seam}: {type(error).__name__}: {text:.300}"
    return SpecError(f"{name}: {text}")
