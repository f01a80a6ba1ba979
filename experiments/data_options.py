"""Options of data sets in the words of the command line."""

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
    subset: Literal["all", "half"] = option(
        "all", "cifar10: all training images, or the files of one half"
    )


def check_subset(told: ImageFlags) -> None:
    """Refuses a part of data that come whole.

    Raises:
      ConfigError: naming the flag.
    """
    if told.subset != "all" and told.name != "cifar10":
        raise ConfigError(
            f"--data_subset: expected all for {told.name}, got {told.subset}"
        )


def load_images(told: ImageFlags) -> data.Images:
    """Reads the images that the flags name.

    Raises:
      DataError: a file is missing or not as expected.
    """
    chosen = {"subset": told.subset} if told.name == "cifar10" else {}
    return data.load_images(told.name, data_dir=told.dir, **chosen)
