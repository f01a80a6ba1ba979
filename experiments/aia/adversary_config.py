"""Who is asked: the views of `fljax.transcript.views` that a run's attacks are given."""

import dataclasses
from typing import Literal, NamedTuple

from fljax.driver.config import ConfigError
from fljax.driver.option import option, several
from fljax.transcript.views import View


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdversaryConfig:
    """No prefix."""

    adversary: tuple[Literal["messages", "sum", "models", "final"], ...] = several(
        ("messages",),
        "what the adversary sees; several: each in turn. messages: what each client is "
        "sent and returns; sum: the weighted sum of clients' messages (secure "
        "aggregation); models: the global models; final: the last of them",
    )
    sum_of: tuple[int, ...] = option(
        (),
        "sum: participants of a round in a group at least, whose messages are added up; "
        "several: each in turn; empty: all who take part",
        min=1,
    )

    def __post_init__(self):
        for name in ("adversary", "sum_of"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ConfigError(f"--{name}: expected different values, got {values}")
        if self.sum_of and "sum" not in self.adversary:
            raise ConfigError("--sum_of: expected --adversary=sum")

    @property
    def sights(self) -> list["Sight"]:
        """One after another."""
        found = []
        for view in self.adversary:
            sizes = self.sum_of if view == "sum" and self.sum_of else (None,)
            found += [Sight(view, size) for size in sizes]
        return found


class Sight(NamedTuple):
    """What one adversary sees: a view, of sums over so many clients, None for all."""

    view: View = "messages"
    sum_of: int | None = None

    @property
    def setting(self) -> str:
        """In rows of results."""
        if self.view == "messages":
            return "passive"
        return self.view if self.sum_of is None else f"sum_of_{self.sum_of}"


MESSAGES = Sight()
