"""Data sets that ship with scikit-learn: what the manifest says about their files."""

import hashlib
import importlib.resources

from fljax.data.source import Source
from fljax.data.table import FileRecord


def bundled_record(source: Source) -> FileRecord:
    """Record of the installed copy; its hash is of the file as shipped."""
    path = importlib.resources.files("sklearn.datasets.data") / source.filename
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return FileRecord(name=source.filename, sha256=digest, origin="scikit-learn")
