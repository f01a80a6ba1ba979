"""Where every data set's files come from, under which licence, and how to cite them.

The same facts stand in `third_party/<data set>/METADATA`; a test keeps them equal.
Hashes are of a file's content, after decompression where a local copy ends in `.gz`.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """One file of a data set.

    Attributes:
      dataset: name that `load` knows.
      filename: the file as it is stored; a local copy may add `.gz`.
      url: direct address, or the page to get it from where it cannot be downloaded.
      sha256: hash of the content, or None where the publisher revises the file.
      licence: short name of the terms.
      citation: who made it.
      download: whether `url` answers with the file itself.
      folders: sub-folders of a data directory that are searched besides itself.
      member: name of the wanted file where `filename` is an archive.
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
    max_bytes: int = 1 << 30
    note: str = ""


MEDICAL = Source(
    dataset="medical",
    filename="insurance.csv",
    url=(
        "https://raw.githubusercontent.com/stedy/Machine-Learning-with-R-datasets/"
        "master/insurance.csv"
    ),
    sha256="505c1cbc2e63d0363bac59501563df2530aadf4cdb9cfee226f4ef32f5468281",
    licence="public domain, as its repository states",
    citation="Lantz, B.: Machine Learning with R. Packt Publishing, 2013",
    folders=("medical",),
    max_bytes=1 << 20,
)

ADULT_TRAIN = Source(
    dataset="adult",
    filename="adult.data",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    licence="CC BY 4.0",
    citation="Becker, B., Kohavi, R.: Adult. UCI, 1996, doi:10.24432/C5XW20",
    folders=("adult",),
    max_bytes=1 << 26,
)

ADULT_TEST = dataclasses.replace(
    ADULT_TRAIN,
    filename="adult.test",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test",
    sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
)

ACS_INCOME = Source(
    dataset="acs_income",
    filename="csv_p{st}.zip",
    url="https://www2.census.gov/programs-surveys/acs/data/pums/{year}/{horizon}/csv_p{st}.zip",
    licence="public domain (work of the United States government)",
    citation=(
        "U.S. Census Bureau: American Community Survey, Public Use Microdata Sample; "
        "Ding, F. et al.: Retiring Adult. NeurIPS 2021"
    ),
    max_bytes=1 << 32,
)

PUMS2016 = Source(
    dataset="pums2016",
    filename="pums2016_fulltime_psub_acsincome_columns.csv",
    url="https://github.com/WinVector/PDSwR2/tree/main/PUMS",
    sha256="4784a3577994637a435e2aad4f72a3e5ca32be11f16f6118922d05868167e5f0",
    licence="CC BY-NC-SA 4.0",
    citation=(
        "Zumel, N., Mount, J.: Practical Data Science with R, 2nd edition. Manning, "
        "2019; U.S. Census Bureau: American Community Survey 2016"
    ),
    download=False,
    folders=("acs", "pums2016"),
    note="the twelve ACSIncome columns of psub.RDS, written as CSV",
)

_BUNDLED = Source(
    dataset="",
    filename="",
    url="",
    licence="CC BY 4.0",
    citation="",
    download=False,
)

DIABETES = dataclasses.replace(
    _BUNDLED,
    dataset="diabetes",
    filename="diabetes_data_raw.csv.gz",
    url="https://scikit-learn.org/stable/modules/generated/sklearn.datasets.load_diabetes.html",
    licence="BSD 3-Clause (as part of scikit-learn)",
    citation="Efron, B. et al.: Least Angle Regression. Annals of Statistics 32, 2004",
)

BREAST_CANCER = dataclasses.replace(
    _BUNDLED,
    dataset="breast_cancer",
    filename="breast_cancer.csv",
    url="https://scikit-learn.org/stable/modules/generated/sklearn.datasets.load_breast_cancer.html",
    citation=(
        "Wolberg, W. et al.: Breast Cancer Wisconsin (Diagnostic). UCI, 1993, "
        "doi:10.24432/C5DW2B"
    ),
)

DIGITS = dataclasses.replace(
    _BUNDLED,
    dataset="digits",
    filename="digits.csv.gz",
    url="https://scikit-learn.org/stable/modules/generated/sklearn.datasets.load_digits.html",
    citation=(
        "Alpaydin, E., Kaynak, C.: Optical Recognition of Handwritten Digits. UCI, "
        "1998, doi:10.24432/C50P49"
    ),
)

SOURCES = (
    MEDICAL,
    ADULT_TRAIN,
    ADULT_TEST,
    ACS_INCOME,
    PUMS2016,
    DIABETES,
    BREAST_CANCER,
    DIGITS,
)
