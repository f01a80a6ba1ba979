"""The flags of a data set of images."""

import dataclasses
from typing import Literal

from fljax import data
from fljax.driver.config import ConfigError
from fljax.driver.option import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageFlags:
    """What the configuration of a program inherits that reads images; prefix `data`."""

    name: str
    dir: str | None = option(None, "folder with local copies of the data files")
    subset: Literal["all", "half", "halves"] = option(
        "all",
        "cifar10: all training images from the publisher's archive, or from the files of "
        "one half or of both",
    )

    def __post_init__(self):
        if self.subset != "all" and self.name != "cifar10":
            raise ConfigError(
                f"--data_subset: expected all for {self.name}, got {self.subset}"
            )


def load_images(config: ImageFlags) -> data.Images:
    """Reads the images that the flags name.

    Raises:
      DataError: a file is missing or not as expected.
    """
    chosen = {"subset": config.subset} if config.name == "cifar10" else {}
    return data.load_images(config.name, data_dir=config.dir, **chosen)
