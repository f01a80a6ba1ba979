"""What --dry_run says of columns and clients, before anything is trained."""

from collections.abc import Iterator

from experiments.aia.setup import Setup
from fljax import data


def columns(setup: Setup) -> Iterator[str]:
    """What each column of the data becomes."""
    own_file = setup.config.data.name == "csv"
    listed = data.columns(setup.clients.datasets[0])
    for each in listed:
        line = f"column {each.name}: {each.role}, {each.values}"
        if each.role in ("input", "sensitive"):
            line += f"; {each.inputs} input{'s' * (each.inputs != 1)}"
        if each.few and own_file:
            line += f"; as categories with --data_categorical={each.name}"
        yield line
    yield f"{sum(each.inputs for each in listed)} inputs"


def clients(setup: Setup) -> Iterator[str]:
    """Clients that have a name, and their rows."""
    dealt = setup.clients
    for seed, names, sizes in zip(
        setup.config.run.seeds, dealt.names, dealt.sizes, strict=False
    ):
        each = (
            f"{name} ({size} rows)" for name, size in zip(names, sizes, strict=True)
        )
        yield f"clients of seed {seed}: {', '.join(each)}"
