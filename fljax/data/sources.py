"""Where every data set's files come from, under which licence, and how to cite them.

The same facts stand in `third_party/<data set>/METADATA`; a test keeps them equal.
Hashes are of a file as it is published; a local copy that adds `.gz` is decompressed
first.
"""

import dataclasses

from fljax.data.source import Source

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

CALIFORNIA = Source(
    dataset="california",
    filename="cal_housing.tgz",
    url="https://ndownloader.figshare.com/files/5976036",
    sha256="aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
    licence="no licence stated; made of public census data",
    citation=(
        "Pace, R. K., Barry, R.: Sparse spatial autoregressions. Statistics & "
        "Probability Letters 33, 1997"
    ),
    folders=("california",),
    max_bytes=1 << 24,
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

_MNIST = Source(
    dataset="mnist",
    filename="",
    url="",
    licence="CC BY-SA 3.0",
    citation=(
        "LeCun, Y. et al.: Gradient-based learning applied to document recognition. "
        "Proceedings of the IEEE 86, 1998"
    ),
    folders=("mnist", "MNIST/raw"),
    max_bytes=1 << 26,
)

# Training images and labels, test images and labels.
MNIST = tuple(
    dataclasses.replace(
        _MNIST,
        filename=f"{name}.gz",
        url=f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz",
        sha256=sha256,
    )
    for name, sha256 in (
        (
            "train-images-idx3-ubyte",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        (
            "train-labels-idx1-ubyte",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        (
            "t10k-images-idx3-ubyte",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        (
            "t10k-labels-idx1-ubyte",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    )
)

CIFAR10 = Source(
    dataset="cifar10",
    filename="cifar-10-binary.tar.gz",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    licence="no licence stated; its authors ask to be cited",
    citation=(
        "Krizhevsky, A.: Learning Multiple Layers of Features from Tiny Images. "
        "Technical report, University of Toronto, 2009"
    ),
    folders=("cifar10",),
    max_bytes=1 << 28,
)


def _cifar10_array(name: str, sha256: str) -> Source:
    return dataclasses.replace(
        CIFAR10,
        filename=name,
        url="https://www.cs.toronto.edu/~kriz/cifar.html",
        sha256=sha256,
        download=False,
        note="an array of images or labels; of the training images 2,500 of each class",
    )


CIFAR10_HALVES = (  # of the training images: images and labels
    (
        _cifar10_array(
            "cifar10_train_part1_x.npy.xz",
            "5fe34c242b2bde04f2ee015817b38f74145b687baada06929baad19488730570",
        ),
        _cifar10_array(
            "cifar10_train_part1_y.npy",
            "9a782f0547e0d59e3fbab62e8885cc7a78bbc6d4f51fc8add99a450eefbcd351",
        ),
    ),
    (
        _cifar10_array(
            "cifar10_train_part2_x.npy.xz",
            "23481332e31e7589e5da78bfbacb63b22705a73de49aa3649b4bd86819c242f7",
        ),
        _cifar10_array(
            "cifar10_train_part2_y.npy",
            "341ec532f84a85c368cc7cce4cc3ed7d40991ac68ee960b818f35653e5fec3ad",
        ),
    ),
)

CIFAR10_TEST = (
    _cifar10_array(
        "cifar10_test_x.npy.xz",
        "da8080fc638c10038bc03f4d2d24343ebbe24492ef1a1d71501959a0f380d1c8",
    ),
    _cifar10_array(
        "cifar10_test_y.npy",
        "c97bbf8f2f25031ee4faae51298e1f38b253eaf8a85dff784bd0efcce06ab222",
    ),
)

# What `LFW_DEEPFUNNELED` holds of the people with at least 20 photographs.
LFW_MIN20 = "lfw_deepfunneled_min20.tar"

LFW_DEEPFUNNELED = Source(
    dataset="lfw",
    filename="lfw-deepfunneled.tgz",
    url="https://vis-www.cs.umass.edu/lfw/",
    licence="for research; the photographs belong to their makers",
    citation=(
        "Huang, G. B. et al.: Labeled Faces in the Wild. Technical report 07-49, "
        "University of Massachusetts, Amherst, 2007"
    ),
    download=False,
    folders=("lfw",),
    also=("lfw-deepfunneled.tar", LFW_MIN20),
    max_bytes=1 << 29,
    note="or use alignment=funneled, which can be downloaded",
)

LFW_FUNNELED = dataclasses.replace(
    LFW_DEEPFUNNELED,
    filename="lfw-funneled.tgz",
    url="https://ndownloader.figshare.com/files/5976015",
    sha256="b47c8422c8cded889dc5a13418c4bc2abbda121092b3533a83306f90d900100a",
    download=True,
    also=(),
    note="",
)

SOURCES = (
    MEDICAL,
    ADULT_TRAIN,
    ADULT_TEST,
    CALIFORNIA,
    ACS_INCOME,
    PUMS2016,
    DIABETES,
    BREAST_CANCER,
    DIGITS,
    *MNIST,
    CIFAR10,
    *CIFAR10_HALVES[0],
    *CIFAR10_HALVES[1],
    *CIFAR10_TEST,
    LFW_DEEPFUNNELED,
    LFW_FUNNELED,
)
