"""Writes `docs/api/*.md`: one page for each part of the library, every module on it.

A name that a package offers as its own is described there and not again in the module
where it is defined. What is public is what `public` says; a test asks for a docstring
of each.
"""

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Iterator

if typing.TYPE_CHECKING:
    from sphinx.application import Sphinx

# Page -> packages and modules, with all that is below them.
PAGES = {
    "audit": (
        "fljax.auditing.library",
        "fljax.auditing.findings",
        "fljax.auditing.fits",
        "fljax.auditing.undeclared",
        "fljax.auditing.pace",
        "fljax.auditing.doubts",
        "fljax.auditing.nearness",
        "fljax.auditing.unusual",
        "fljax.verdicts",
    ),
    "transcript": ("fljax.transcript",),
    "attacks": (
        "fljax.attacks.adversary",
        "fljax.attacks.needs",
        "fljax.attacks.estimates",
        "fljax.attacks.spec",
        "fljax.attacks.registry",
        "fljax.attacks.each_client",
        "fljax.attacks.streams",
        "fljax.attacks.controls",
    ),
    "attacks.attribute": ("fljax.attacks.attribute",),
    "attacks.trajectory": ("fljax.attacks.trajectory",),
    "attacks.reconstruction": ("fljax.attacks.reconstruction",),
    "attacks.inversion": ("fljax.attacks.inversion",),
    "attacks.label_distribution": ("fljax.attacks.label_distribution",),
    "attacks.membership": ("fljax.attacks.membership",),
    "attacks.rows": ("fljax.attacks.rows",),
    "defenses": ("fljax.defenses", "fljax.per_example"),
    "privacy": ("fljax.privacy",),
    "federation": (
        "fljax.types",
        "fljax.federation",
        "fljax.local",
        "fljax.in_place",
        "fljax.losses",
        "fljax.dropout",
        "fljax.rounds",
        "fljax.schedule",
        "fljax.batches",
        "fljax.participation",
        "fljax.parallel",
        "fljax.compiled",
        "fljax.draws",
        "fljax.precision",
    ),
    "models": ("fljax.models",),
    "data": ("fljax.data", "fljax.partition"),
    "scores": (
        "fljax.metrics",
        "fljax.certainty",
        "fljax.image_metrics",
        "fljax.imputation",
        "fljax.shrinkage",
        "fljax.fit",
        "fljax.results",
    ),
}


def modules(page: str) -> Iterator[types.ModuleType]:
    """Every module of a page, packages before what is in them."""
    for name in PAGES[page]:
        module = importlib.import_module(name)
        yield module
        below = getattr(module, "__path__", None)
        if below is not None:
            for found in pkgutil.walk_packages(below, f"{name}."):
                yield importlib.import_module(found.name)


def public(module: types.ModuleType) -> list[str]:
    """Names that a module offers: its `__all__`, else what it defines without `_`."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
    ]


def is_described(module: types.ModuleType, name: str) -> bool:
    """Whether it can have a docstring: types that are only names for others cannot."""
    thing = getattr(module, name)
    return inspect.isclass(thing) or inspect.isfunction(thing)


def _offered_above(module: types.ModuleType) -> set[int]:
    """Identities of what packages above it offer as their own."""
    found: set[int] = set()
    parts = module.__name__.split(".")
    for length in range(2, len(parts)):
        package = importlib.import_module(".".join(parts[:length]))
        names = getattr(package, "__all__", ())
        found |= {id(getattr(package, name)) for name in names}
    return found


def text(page: str) -> str:
    """A page in Markdown."""
    parts = [f"# {page}"]
    for module in modules(page):
        above = _offered_above(module)
        names = public(module)
        own = [name for name in names if id(getattr(module, name)) not in above]
        if not own and names:
            continue
        described = [name for name in own if is_described(module, name)]
        parts += [
            f"## {module.__name__}",
            "```{eval-rst}",
            f".. automodule:: {module.__name__}",
            *([f"   :members: {', '.join(described)}"] if described else []),
            *(
                f"\n.. autodata:: {module.__name__}.{n}"
                for n in own
                if n not in described
            ),
            "```",
        ]
    return "\n".join(parts) + "\n"


def _write(app: "Sphinx") -> None:
    folder = app.srcdir / "api"
    folder.mkdir(exist_ok=True)
    for page in PAGES:
        path, written = folder / f"{page}.md", text(page)
        if not path.exists() or path.read_text(encoding="utf-8") != written:
            path.write_text(written, encoding="utf-8")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Pages are there before Sphinx looks for them."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
