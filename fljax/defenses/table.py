"""The table of all defenses: what each number is, its unit, default and bounds."""

from fljax.defenses.definition import Choice, Definition, Parameter
from fljax.defenses.registry import DEFENSES

HEADER = ("defense", "acts on", "number", "meaning", "default", "expected")


def rows() -> list[tuple[str, ...]]:
    """One row per number, in the columns of `HEADER`."""
    return [
        (name, known.acts, each.name, each.meaning, _default(each), each.expected)
        for name, known in DEFENSES.items()
        for each in known.parameters
    ]


def promises() -> list[tuple[str, str, str]]:
    """Of each defense whether it needs Poisson batches, and what it promises."""
    return [
        (name, _poisson(known), known.promise or "epsilon of the noise that it adds")
        for name, known in DEFENSES.items()
    ]


def help_text() -> str:
    """All defenses in a few lines, for a flag's help."""
    return "; ".join(signature(name, known) for name, known in DEFENSES.items())


def signature(name: str, known: Definition) -> str:
    """A defense as it is written, with its defaults."""
    told = [
        f"{each.name}={'...' if each.required else _default(each)}"
        if each.name not in ("sigma", "epsilon")
        else f"{each.name}=..."
        for each in known.parameters
    ]
    return f"{name}({', '.join(told)})".replace(", epsilon=", " | epsilon=")


def markdown() -> str:
    """Both tables for documentation."""
    return "\n\n".join(
        "\n".join(_line(row) for row in (header, ["---"] * len(header), *body))
        for header, body in (
            (HEADER, rows()),
            (("defense", "Poisson batches", "promises"), promises()),
        )
    )


def _line(cells) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return parameter.default
    if parameter.required:
        return "must be given"
    return "none" if parameter.default is None else f"{parameter.default:g}"


def _poisson(known: Definition) -> str:
    if isinstance(known.poisson, tuple):
        return "with {}={}".format(*known.poisson)
    return "yes" if known.poisson else "no"
