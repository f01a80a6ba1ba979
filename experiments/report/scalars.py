"""Rows as scalars that TensorBoard shows: a folder for each run.

Values are means over the seeds and over all clients. What was measured by round is a
curve over the rounds, an active attack one over its active rounds, and every other
number a single point at step 0.
"""

import math
import pathlib
from collections.abc import Iterator, Sequence

from experiments.report.figures import selection
from fljax import files
from fljax.driver.config import ConfigError
from fljax.results import Row, summarise

# TensorBoard finds a file by `tfevents`; a name without time and host is always the same.
_NAME, _VERSION = "events.out.tfevents.0.fljax", "brain.Event:2"
_FLOAT32 = 3e38


def check() -> None:
    """Raises `ConfigError` where TensorBoard's package is missing."""
    try:
        import tensorboard  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "--tensorboard: needs the package tensorboard: pip install -e '.[tensorboard]'"
        ) from error


def write(folder: pathlib.Path, rows: Sequence[Row]) -> None:
    """Writes the scalars of one run; the same rows give the same bytes."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer import record_writer

    with files.replacing(folder / _NAME) as file:
        records = record_writer.RecordWriter(file)
        begin = event_pb2.Event(wall_time=0, file_version=_VERSION)
        records.write(begin.SerializeToString())
        for tag, step, value in scalars(rows):
            shown = summary_pb2.Summary.Value(tag=tag, simple_value=value)
            summary = summary_pb2.Summary(value=[shown])
            event = event_pb2.Event(wall_time=0, step=step, summary=summary)
            records.write(event.SerializeToString())


def scalars(rows: Sequence[Row]) -> Iterator[tuple[str, int, float]]:
    """Tag, step and value, curve by curve; what is not finite is left out."""
    found = []
    several = len({row.data for row in rows}) > 1
    for s in summarise(selection.totals(rows)):
        setting, step = _at(s.row)
        data = s.row.data if several else ""
        parts = data, s.row.model, s.row.defense, s.row.attack, setting, s.row.point
        named = " ".join(part for part in parts if part not in ("", "none"))
        if math.isfinite(s.estimate.mean) and abs(s.estimate.mean) < _FLOAT32:
            found.append((f"{s.row.metric}/{named}", step, s.estimate.mean))
    yield from sorted(found)


def _at(row: Row) -> tuple[str, int]:
    """The setting without its number, and the number."""
    done, active = selection.round_number(row), selection.active_rounds(row)
    if done is not None:
        return "", done
    return ("active", active) if active else (row.setting, 0)
