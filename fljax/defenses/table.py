"""The table of all defenses: what each number is, its unit, default and bounds."""

from fljax.defenses.definition import Choice, Definition, Parameter
from fljax.defenses.registry import DEFENSES

NUMBERS = ("number", "of", "what it is", "default", "expected")
PROMISES = ("defense", "acts on", "Poisson batches", "what it promises")


def numbers() -> list[tuple[str, ...]]:
    """One row per number or word, in the columns of `NUMBERS`."""
    found: dict[Parameter, list[str]] = {}
    for name, known in DEFENSES.items():
        for each in known.parameters:
            found.setdefault(each, []).append(name)
    return [
        (each.name, ", ".join(names), each.meaning, _default(each), each.expected)
        for each, names in found.items()
    ]


def promises() -> list[tuple[str, ...]]:
    """One row per defense, in the columns of `PROMISES`."""
    return [
        (
            f"`{signature(name, known)}`",
            known.acts,
            _poisson(known),
            f"nothing: {known.promise}" if known.promise else "epsilon of its noise",
        )
        for name, known in DEFENSES.items()
    ]


def help_text() -> str:
    """All defenses in a few lines, for a flag's help."""
    return "; ".join(signature(name, known) for name, known in DEFENSES.items())


def signature(name: str, known: Definition) -> str:
    """A defense as it is written, with its defaults."""
    values = [
        each.name + ("" if _default(each) in ("", "none") else f"={_default(each)}")
        for each in known.parameters
    ]
    return f"{name}({', '.join(values)})".replace("sigma, epsilon", "sigma | epsilon")


def markdown() -> str:
    """Both tables for documentation."""
    return "\n\n".join(
        "\n".join(map(_line, (header, ["---"] * len(header), *body)))
        for header, body in ((PROMISES, promises()), (NUMBERS, numbers()))
    )


def _line(cells) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(parameter: Parameter) -> str:
    """Empty where it must be given."""
    if isinstance(parameter, Choice):
        return parameter.default
    if parameter.required:
        return ""
    return "none" if parameter.default is None else f"{parameter.default:g}"


def _poisson(known: Definition) -> str:
    if isinstance(known.poisson, tuple):
        return "with {}={}".format(*known.poisson)
    return "yes" if known.poisson else "no"
