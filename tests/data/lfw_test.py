import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from fljax import data
from fljax.data import lfw
from fljax.data.fetch import File
from fljax.data.table import DataError, FileRecord


def jpeg(brightness, size=(250, 250)):
    buffer = io.BytesIO()
    Image.new("RGB", size, (brightness, 10, 200)).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def archive(contents):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"lfw-deepfunneled/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    record = FileRecord(name="lfw.tar", sha256="", origin="local")
    return File(record, buffer.getvalue())


def people(**counts):
    """One colour per person: the n-th one has red 40 n."""
    return {
        f"{person}/{person}_{i:04d}.jpg": jpeg(40 * n)
        for n, (person, count) in enumerate(counts.items())
        for i in range(1, count + 1)
    }


def load(contents, min_images=2):
    return lfw.from_archive(archive(contents), name="lfw", min_images=min_images)


def test_people_with_enough_photographs_become_classes_by_name():
    found = load(people(Zoe_B=3, Ann_A=4, Only_One=1, Mia=2))
    assert found.classes == ("Ann A", "Mia", "Zoe B")
    assert (found.shape, found.white) == ((32, 32, 3), 255)
    assert [len(found.train.y), len(found.validation.y)] == [6, 3]
    labels = np.concatenate([found.train.y, found.validation.y])
    assert np.bincount(labels).tolist() == [4, 2, 3]
    reds = np.concatenate([found.train.x, found.validation.x])[..., 0].mean(axis=(1, 2))
    # Ann has red 40, Mia 120, Zoe 0.
    np.testing.assert_allclose(reds, np.array([40, 120, 0])[labels], atol=4)


def test_the_order_is_that_of_scikit_learn():
    found = load(people(Ann=5, Bob=6))
    order = np.arange(11)
    np.random.RandomState(42).shuffle(order)
    labels = np.concatenate([found.train.y, found.validation.y])
    np.testing.assert_array_equal(labels, (order >= 5).astype(int))


def test_the_crop_is_128_pixels_from_61_scaled_to_a_quarter():
    pixels = np.zeros((250, 250, 3), np.uint8)
    pixels[61:125, 61:189, 0] = 255  # the upper half of the crop is red
    pixels[:61] = pixels[189:] = pixels[:, :61] = pixels[:, 189:] = 128
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=100, subsampling=0)
    contents = people(Ann=4, Bob=4)
    contents = dict.fromkeys(contents, buffer.getvalue())
    red = load(contents).train.x[0, :, :, 0].astype(int)
    assert red[1:15, 1:31].min() > 240 and red[17:31, 1:31].max() < 15


def test_what_is_no_photograph_is_passed_over():
    contents = people(Ann=4, Bob=4) | {
        "readme.txt": b"text",
        "Ann/Bob_0009.jpg": b"a wrong name",
        "Ann/Ann_0009.png": b"",
    }
    assert len(load(contents).train.y) == 6


BAD_PICTURES = {
    "garbage": (b"no picture", "not a readable JPEG"),
    "empty": (b"", "not a readable JPEG"),
    "cut": (jpeg(1)[:700], "not a readable JPEG"),
    "another format": (b"GIF89a\1\0\1\0\0\0\0;", "not a readable JPEG"),
    "another size": (
        jpeg(1, (250, 100)),
        r"\(250, 100\) pixels, expected \(250, 250\)",
    ),
}


@pytest.mark.parametrize("content, message", BAD_PICTURES.values(), ids=BAD_PICTURES)
def test_a_bad_picture_is_one_line_with_its_name(content, message):
    contents = people(Ann=4, Bob=4) | {"Ann/Ann_0003.jpg": content}
    with pytest.raises(DataError, match=f"Ann/Ann_0003.jpg: {message}") as error:
        load(contents)
    assert "\n" not in str(error.value)


def test_an_archive_of_one_person_is_refused():
    with pytest.raises(DataError, match="lfw.tar: 1 people with 3 or more photographs"):
        load(people(Ann=4, Bob=2), min_images=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alignment": "x"}, "alignment='x' is not one of deepfunneled, funneled"),
        ({"min_images": 14}, "lacks people for min_images=14, below 20"),
    ],
    ids=["alignment", "min_images"],
)
def test_options_out_of_range_are_one_line(options, message, tmp_path):
    given = archive(people(Ann=4, Bob=4)).content
    (tmp_path / "lfw_deepfunneled_min20.tar").write_bytes(given)
    with pytest.raises(DataError, match=message):
        data.load_images("lfw", data_dir=str(tmp_path), **options)
