"""Pictures side by side: a row for each case, a column for each image."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments.report.figures import drawing

_SIDE, _NAMES = 0.9, 2.4  # inches: of an image, and of the names on the left
_BLANK = 0.5


def pictures(
    rows: Mapping[str, np.ndarray],
    *,
    columns: Sequence[str] = (),
    captions: Mapping[str, Sequence[str]] | None = None,
    title: str = "",
) -> Figure:
    """Images as a grid.

    Args:
      rows: name -> `[n, h, w, channels]` pixels, 0 black and 1 white; what lies beyond
        is cut and what is not finite is grey. One channel is shown in greys, three in
        colours. Rows may be shorter than the longest.
      columns: names over the images.
      captions: row -> a few characters under each of its images.
      title: of all.

    Raises:
      ValueError: there is nothing to show, or it is not images.
    """
    images = {name: _shown(name, np.asarray(x)) for name, x in rows.items()}
    if not images:
        raise ValueError("pictures: expected at least one row, got none")
    width = max(map(len, images.values()))
    captions = captions or {}
    size = (_NAMES + _SIDE * width, (_SIDE + 0.15 * bool(captions)) * len(images) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(images), width, squeeze=False)
    for line, (name, row) in zip(grid, images.items(), strict=True):
        for axes in line:
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_frame_on(False)
        said = captions.get(name, ())
        for axes, image in zip(line, row, strict=False):
            axes.imshow(image, vmin=0, vmax=1, cmap="gray", interpolation="nearest")
        for axes, text in zip(line, said, strict=False):
            axes.set_xlabel(drawing.plain(text), fontsize=6, labelpad=2)
        line[0].set_ylabel(
            drawing.plain(name), rotation=0, ha="right", va="center", fontsize=8
        )
    for axes, text in zip(grid[0], columns, strict=False):
        axes.set_title(drawing.plain(text), fontsize=7)
    figure.suptitle(drawing.plain(title, 80), fontsize="medium")
    return figure


def _shown(name: str, x: np.ndarray) -> np.ndarray:
    if x.ndim != 4 or not len(x) or x.shape[-1] not in (1, 3):
        raise ValueError(
            f"pictures: expected [n, h, w, 1 or 3] of {name}, got {list(x.shape)}"
        )
    x = np.clip(np.where(np.isfinite(x), x, _BLANK), 0, 1)
    return x[..., 0] if x.shape[-1] == 1 else x
