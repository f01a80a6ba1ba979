import subprocess
import sys

import numpy as np
import pytest

from fljax import data
from fljax.data import sources

OFFLINE = ("breast_cancer", "diabetes", "digits", "leaf_synthetic", "toy")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(data.DataError, match="unknown data set 'iris', known are acs_"):
        data.load("iris")


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(data.DataError, match="unknown option 'size', options: seed,"):
        data.load("toy", size=3)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(data.DataError, match="unknown preset 'deep', presets: neural"):
        data.preset("toy", "deep")


def test_what_is_measured_of_tumours_can_be_cut_at_its_median():
    table = data.load("breast_cancer", sensitive="high_texture")
    whole = data.load("breast_cancer").frame.mean_texture
    np.testing.assert_array_equal(table.frame.high_texture, whole > whole.median())
    assert table.sensitive == "high_texture"
    assert not [name for name in table.frame if name.endswith("n_texture")]
    with pytest.raises(data.DataError, match="nothing is measured as 'size'"):
        data.load("breast_cancer", sensitive="high_size")


@pytest.mark.parametrize("name", data.names())
def test_every_data_set_has_a_neural_and_a_linear_preset(name):
    assert set(data.presets(name)) >= {"neural", "linear"}
    assert isinstance(data.preset(name, "neural"), data.Preprocessing)


@pytest.mark.parametrize("name", OFFLINE)
@pytest.mark.parametrize("which", ["neural", "linear"])
def test_every_offline_data_set_becomes_finite_arrays(name, which):
    dataset = data.prepare(data.load(name), data.preset(name, which), seed=3)
    for split in (dataset.train, dataset.test):
        num_rows = len(split.frame)
        assert split.x.numeric.shape == (num_rows, dataset.num_numeric)
        assert split.x.numeric.dtype == np.float32
        assert split.x.codes.shape[0] == num_rows
        assert split.y.shape == split.truth.shape == (num_rows,)
        assert np.isfinite(split.x.numeric).all() and np.isfinite(split.y).all()
        assert list(split.frame.index) == list(range(num_rows))
    assert len(dataset.numeric_names) == dataset.num_numeric
    assert len(set(dataset.numeric_names)) == dataset.num_numeric


@pytest.mark.parametrize(
    ("name", "shape", "task"),
    [
        ("diabetes", (442, 10), "regression"),
        ("breast_cancer", (569, 30), "binary"),
        ("digits", (1797, 64), "multiclass"),
    ],
)
def test_bundled_data_sets_have_their_known_size(name, shape, task):
    table = data.load(name)
    assert (len(table.frame), len(table.kinds)) == shape
    assert table.task == task
    assert table.files[0].origin == "scikit-learn"
    assert len(table.files[0].sha256) == 64


def test_diabetes_is_in_raw_units_with_sex_as_the_attribute():
    table = data.load("diabetes")
    assert table.sensitive == "sex"
    assert table.frame["age"].between(19, 79).all()
    assert data.load("diabetes", sensitive="bmi").sensitive == "bmi"


def test_every_source_belongs_to_a_data_set():
    known = {*data.names(), *data.image_names()}
    assert {source.dataset for source in sources.SOURCES} <= known


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "svhn",
            {},
            "unknown image data set 'svhn', known are cifar10, digits, lfw, m",
        ),
        ("mnist", {"size": 3}, "mnist: unknown option 'size', options: none"),
        ("lfw", {"size": 3}, "unknown option 'size', options: alignment, min_images"),
    ],
    ids=["name", "no options", "options"],
)
def test_images_of_an_unknown_name_or_option_list_the_known_ones(
    name, options, message
):
    with pytest.raises(data.DataError, match=message):
        data.load_images(name, **options)


@pytest.mark.parametrize("name", ["cifar10", "lfw", "mnist"])
def test_offline_images_say_what_to_get(name, tmp_path, monkeypatch):
    def refuse(url, *args, **kwargs):
        raise data.DataError(f"{url}: no connection")

    monkeypatch.setattr("fljax.data.fetch.download", refuse)
    with pytest.raises(
        data.DataError, match=rf"{name}: .* get .* put it into"
    ) as error:
        data.load_images(name, data_dir=str(tmp_path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("package", "name", "load"),
    [("folktables", "acs_income", data.load), ("PIL", "lfw", data.load_images)],
)
def test_without_the_extra_one_line_names_it(package, name, load, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"fljax.data.{name}", raising=False)
    with pytest.raises(
        data.DataError, match=rf"{name} needs {package}.*: pip install -e '.\[data\]'"
    ):
        load(name)


def test_importing_the_package_imports_no_data_set():
    code = (
        "import sys, fljax.data;"
        "heavy = {'sklearn', 'folktables', 'pooch', 'requests', 'urllib.request', 'PIL'};"
        "names = {*fljax.data.names(), *fljax.data.image_names()};"
        "own = {f'fljax.data.{n}' for n in names};"
        "sys.exit(' '.join((heavy | own) & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
