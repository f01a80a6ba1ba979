"""What `experiments.gradient_leakage` can be told, and what Wei et al. (2021) chose.

What is left at none is the paper's choice for the data. The paper gives neither the
distance below which an attack has succeeded nor the fraction that DSSGD uploads; both
are flags here, and all that is printed depends on them.
"""

import dataclasses
import math
from typing import Literal, NamedTuple

from experiments import defense_options
from experiments.fed_cdp import settings as fed_cdp_settings
from fljax.driver.config import ConfigError
from fljax.driver.image_flags import ImageFlags
from fljax.driver.option import RunFlags, option, several
from fljax.memory import MOST_ROUNDS

Network = Literal["lenet", "cnn"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig(ImageFlags):
    """Prefix `data`."""

    name: Literal["digits", "mnist", "cifar10", "lfw"] = option(
        "digits", "images; digits needs no file"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(RunFlags):
    """No prefix."""

    defense: str = option(
        "none; fed_sdp(clip=4, sigma=6); fed_cdp(clip=4, sigma=6); "
        "fed_cdp(clip=6, decay_to=2, sigma=6)",
        defense_options.SEVERAL,
    )
    types: tuple[Literal[0, 1, 2], ...] = several(
        (0, 1, 2),
        "where the adversary sits: 0 at the server, behind what it does on arrival; 1 "
        "at the client, which sends; 2 inside its training, where each example has a "
        "gradient, twice where noise is drawn on their sum: before it, and as the "
        "release of a batch of this example alone",
    )
    networks: tuple[Network, ...] = several(
        ("lenet",),
        "untrained networks: lenet, sigmoids, on which such attacks are usually shown; "
        "cnn, ReLU and max-pooling, which the federation trains",
    )
    pruned: tuple[float, ...] = several(
        (0.0,), "fractions of a gradient, the smallest, zeroed last", min=0, below=1
    )
    clients: int = option(100, "clients that are attacked", min=1)
    images: int | None = option(
        None, "images of a client for types 0 and 1; none: the paper's batch", min=1
    )
    one_label: bool = option(
        False,
        "whether a client's images are of one label, its most frequent; the paper's "
        "notebook: eight faces of one person",
    )
    batch_size: int | None = option(
        None, "images of a local step, in their order; none: all", min=1
    )
    sought: Literal["all", "one"] = option(
        "all",
        "types 0 and 1: all images of the client, side by side; or, as the paper's "
        "notebook, one, whose gradient shall be that of all, compared with the first",
    )
    steps: int = option(
        1, "local steps before the message of types 0 and 1; the paper: 1", min=1
    )
    rate: float = option(
        0.05,
        "local learning rate, which the attacker knows; what a client sends is not "
        "rounded to its model's precision, however small this is",
        above=0,
        below=math.inf,
    )
    num_rounds: int | None = option(
        None, "rounds T, over which a clip decays", min=1, max=MOST_ROUNDS
    )
    round: int = option(0, "in which of them the attack happens, from 0", min=0)
    attack: Literal["cpl", "dlg", "inverting_gradients"] = option("cpl", "which attack")
    solver: Literal["lbfgs", "whitened"] = option(
        "lbfgs",
        "cpl, dlg: as published; or whitened, stronger, of a single image, and of "
        "several up to --whitened_pixels",
    )
    whitened_pixels: int = option(
        1024,
        "solver whitened: pixels of several images that are sought at once, each channel "
        "for itself, at most, for a matrix of them times them; lbfgs seeks more",
        min=1,
        of={"solver": ("whitened",)},
    )
    inner_iterations: int = option(
        20,
        "cpl, dlg: of L-BFGS in an attack iteration",
        min=1,
        of={"attack": ("cpl", "dlg")},
    )
    labels: Literal["published", "probed"] = option(
        "published",
        "cpl: labels of several images, as if all classes were as probable to the "
        "model; or probed, from what it says of a grey image",
    )
    prior: Literal["none", "public"] = option(
        "none",
        "cpl: what is known of images: nothing, as published; or a normal distribution "
        "fitted to images that no client has (lfw: of people whom clients have), from "
        "which the search starts, weighed by how much noise the defense draws",
    )
    damping: float = option(
        1e-2,
        "solver whitened: damping",
        above=0,
        below=math.inf,
        of={"solver": ("whitened",)},
    )
    iterations: int = option(
        300, "attack iterations; those of cpl and dlg have --inner_iterations", min=1
    )
    starts: int = option(
        1, "searches side by side, of which the attacker keeps the best", min=1
    )
    tolerance: float = option(
        1e-10, "share of the message's squared norm left, that ends a search",
        min=0, below=1,
    )  # fmt: skip
    give_up: int | None = option(
        None,
        "attack iterations without a loss lower by a thousandth, that end a search",
        min=1,
    )
    attacker: Literal["aware", "naive"] = option(
        "aware",
        "whether it simulates clipping, in every step, leaves out entries that pruning "
        "or DSSGD zeroed and, for a prior, knows how much noise there is; the paper's "
        "does not",
    )
    success_rmse: float = option(
        0.01, "an attack succeeds below it, on every image; pixels are in [0, 1]",
        above=0,
    )  # fmt: skip
    record_every: int = option(
        1, "attack iterations between two looks at the reconstruction", min=1
    )
    seed: int = option(0, "of network, clients, noise and attack", min=0, max=2**32 - 1)
    at_once: int = option(1, "clients side by side on a device", min=1)
    pictures: int = option(10, "columns of images in the pictures", min=1)
    paper_table: Literal["table7"] | None = option(
        None, "table of Wei et al. (2021) to show beside the results"
    )

    def images_sought(self, example: bool) -> int:
        """How many are sought behind one example's gradient, or behind a message."""
        return 1 if example or self.sought == "one" else self.images


class Settings(NamedTuple):
    """All that the program was told, with nothing left at none that has a default."""

    data: DataConfig
    run: Config


def complete(settings: Settings) -> Settings:
    """Fills in the paper's choices and refuses what does not fit together.

    Raises:
      ConfigError: naming the flag.
    """
    run, size = settings.run, fed_cdp_settings.SIZES[settings.data.name]
    images = run.images or size.batch_size
    run = dataclasses.replace(
        run,
        images=images,
        batch_size=run.batch_size or images,
        num_rounds=run.num_rounds or size.num_rounds,
    )
    if images % run.batch_size:
        raise ConfigError(
            f"--batch_size: expected a divisor of --images={images}, "
            f"got {run.batch_size}"
        )
    if images > run.steps * run.batch_size:
        raise ConfigError(
            f"--images: expected at most --steps={run.steps} batches of "
            f"{run.batch_size}, got {images}"
        )
    if run.round >= run.num_rounds:
        raise ConfigError(
            f"--round: expected less than --num_rounds={run.num_rounds}, "
            f"got {run.round}"
        )
    if run.sought == "one" and run.steps > 1:
        raise ConfigError(
            f"--sought: one image is sought behind one step, got --steps={run.steps}"
        )
    if run.attack == "inverting_gradients" and run.solver != "lbfgs":
        raise ConfigError("--solver: inverting_gradients has its own, Adam on signs")
    sought = run.images_sought(run.types == (2,))
    if run.labels == "probed" and not (run.attack == "cpl" and sought > 1):
        raise ConfigError(
            "--labels: probed are those of cpl and of several images, got "
            f"--attack={run.attack} --sought={run.sought} --images={run.images} "
            f"--types={','.join(map(str, run.types))}"
        )
    if run.prior == "public" and (run.attack, run.attacker) != ("cpl", "aware"):
        raise ConfigError(
            "--prior: public is for cpl and who knows of the noise, got "
            f"--attack={run.attack} --attacker={run.attacker}"
        )
    return settings._replace(run=run)
