"""Options of data sets in the words of the command line."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator
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


@contextlib.contextmanager
def named_as_flags(data_set: str, prefix: str = "") -> Iterator[None]:
    """A block whose errors call the options of a data set, `x=`, by their flags.

    Args:
      data_set: name of it.
      prefix: of its flags.

    Raises:
      DataError: those that the block raises, with `--prefix_x=` for `x=`.
    """
    try:
        yield
    except data.DataError as error:
        names = "|".join(data.options(data_set))
        flag = rf"--{prefix}_\1=" if prefix else r"--\1="
        said = re.sub(rf"\b({names})=", flag, str(error))
        raise data.DataError(said) from error
