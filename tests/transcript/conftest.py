"""A saved transcript, and ways to damage and to forge it."""

import hashlib
import json

import numpy as np
import pytest

from fljax import transcript
from fljax.types import Transcript


def _transcript():
    """Two rounds with two clients and one."""
    rng = np.random.default_rng(0)
    params = {"dense": {"kernel": rng.normal(size=(2, 3, 1)), "bias": np.zeros((2, 1))}}
    delta = {
        "dense": {"kernel": rng.normal(size=(2, 2, 3, 1)), "bias": np.ones((2, 2, 1))}
    }
    delta["dense"]["kernel"][0, 0, 0, 0] = np.nan
    delta["dense"]["bias"][1, 1, 0] = -0.0
    return Transcript(
        round=np.array([0, 5], np.int32),
        client=np.array([[3, 4], [4, -1]], np.int32),
        params={"dense": {k: v.astype(np.float32) for k, v in params["dense"].items()}},
        delta={"dense": {k: v.astype(np.float32) for k, v in delta["dense"].items()}},
    )


class Saved:
    """The files `victim.npz` and `victim.json` of a transcript."""

    def __init__(self, stem):
        self.stem = stem
        self.about = {"learning_rate": 0.1, "note": "two rounds"}
        self.archive = stem.with_suffix(".npz")
        self.description = stem.with_suffix(".json")

    def load(self):
        return transcript.load(self.stem)

    def refused(self, suffix):
        """Loading fails with one line that names the file, which is returned."""
        with pytest.raises(transcript.TranscriptError) as caught:
            self.load()
        message = str(caught.value)
        assert str(self.stem.with_suffix(suffix)) in message
        assert "\n" not in message
        return message

    def describe(self, **changes):
        """Rewrites fields of the description; the sha256 is that of the archive."""
        description = json.loads(self.description.read_text())
        content = self.archive.read_bytes()
        description["sha256"] = hashlib.sha256(content).hexdigest()
        description.update(changes)
        self.description.write_text(json.dumps(description))

    def arrays(self):
        with np.load(self.archive) as archive:
            return dict(archive)

    @staticmethod
    def specs(arrays):
        return {
            name: {"shape": list(array.shape), "dtype": array.dtype.str}
            for name, array in arrays.items()
        }

    def forge(self, arrays, specs=None):
        """Saves other arrays with a matching sha256 and, by default, description."""
        np.savez(self.archive, **arrays)
        self.describe(arrays=self.specs(arrays) if specs is None else specs)


@pytest.fixture
def original():
    """Makes the transcript that `saved` holds."""
    return _transcript


@pytest.fixture
def saved(tmp_path):
    files = Saved(tmp_path / "victim")
    transcript.save(files.stem, _transcript(), files.about)
    return files
