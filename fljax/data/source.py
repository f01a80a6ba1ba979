"""Where one file of a data set comes from."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """One file of a data set.

    Attributes:
      dataset: name that `load` knows.
      filename: the file as it is stored; a local copy may add `.gz`.
      url: direct address, or the page to get it from where it cannot be downloaded.
      sha256: hash of the file, or None where the publisher revises the file.
      licence: short name of the terms.
      citation: who made it.
      download: whether `url` answers with the file itself.
      folders: sub-folders of a data directory that are searched besides itself.
      member: name of the wanted file where `filename` is a `.zip`.
      also: other names of local copies; their hash is of the content.
      max_bytes: more than this is refused, compressed or not.
      note: how to make the file from what `url` offers, where that is needed.
    """

    dataset: str
    filename: str
    url: str
    sha256: str | None = None
    licence: str
    citation: str
    download: bool = True
    folders: tuple[str, ...] = ()
    member: str | None = None
    also: tuple[str, ...] = ()
    max_bytes: int = 1 << 30
    note: str = ""
