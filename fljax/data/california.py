"""California housing: 20,640 block groups of the census of 1990, their median house value.

Pace and Barry, "Sparse spatial autoregressions", 1997. The eight inputs and the target, in
100,000 dollars, are those of scikit-learn: rooms, bedrooms and persons by household in
place of the sums that the file holds. All of them are numbers; no column is sensitive
unless one is named.
"""

from fljax.data import archive
from fljax.data.csv_reader import read_csv
from fljax.data.fetch import File, fetch
from fljax.data.options import Preprocessing
from fljax.data.sources import CALIFORNIA
from fljax.data.table import DataError, Table

PRESETS = {
    "neural": Preprocessing(),
    "linear": Preprocessing(target="standardise"),
}

_MEMBER = "CaliforniaHousing/cal_housing.data"
_COLUMNS = (
    "longitude,latitude,house_age,rooms,bedrooms,population,households,median_income,"
    "house_value"
)
_UNIT = 100_000  # dollars
_INPUTS = (
    "median_income",
    "house_age",
    "average_rooms",
    "average_bedrooms",
    "population",
    "average_occupancy",
    "latitude",
    "longitude",
)


def load(*, data_dir: str | None = None, sensitive: str | None = None) -> Table:
    """Reads `cal_housing.tgz`.

    Args:
      data_dir: folder of local copies.
      sensitive: what attacks infer: an input, as a continuous attribute.
    """
    return from_archive(fetch(CALIFORNIA, data_dir), sensitive=sensitive)


def from_archive(file: File, *, sensitive: str | None = None) -> Table:
    """Table of a tar archive with the file of rows.

    Raises:
      DataError: there is no such file in the archive.
    """
    name = file.record.name
    members = dict(archive.tar_members(file.content, name))
    if _MEMBER not in members:
        raise DataError(f"{name}: expected {_MEMBER} in the archive, there is none")
    frame = read_csv(f"{_COLUMNS}\n".encode() + members[_MEMBER], _MEMBER)
    by_household = {
        "average_rooms": frame["rooms"],
        "average_bedrooms": frame["bedrooms"],
        "average_occupancy": frame["population"],
    }
    for column, total in by_household.items():
        frame[column] = total / frame["households"]
    frame["house_value"] = frame["house_value"] / _UNIT
    return Table(
        name="california",
        frame=frame.loc[:, [*_INPUTS, "house_value"]],
        target="house_value",
        kinds=dict.fromkeys(_INPUTS, "numeric"),
        sensitive=sensitive,
        task="regression",
        files=(file.record,),
    )
