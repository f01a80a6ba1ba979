"""The images and labels of the attacked clients: what messages are made of and scored by.

Clients own the rows that `experiments.fed_cdp` deals them. There clients share rows;
here no image is attacked twice, so that clients count as independent.
"""

from typing import NamedTuple

import numpy as np

from experiments.fed_cdp import clients
from experiments.fed_cdp import settings as fed_cdp_settings
from experiments.gradient_leakage.settings import Config, DataConfig
from experiments.gradient_leakage.targets import Targets
from fljax.attacks.inversion.gaussian import Gaussian
from fljax.driver.config import ConfigError


class Truth(NamedTuple):
    """Every client's images.

    Attributes:
      x: `[C, N, h, w, channels]` in [0, 1].
      y: `[C, N]` int32 labels.
    """

    x: np.ndarray
    y: np.ndarray


def load(settings: DataConfig, run: Config) -> tuple[Targets, Truth]:
    """Deals the clients; what is known of them, and their images.

    Raises:
      ConfigError: there are too few images for so many clients.
    """
    source = fed_cdp_settings.DataConfig(
        name=settings.name, dir=settings.dir, subset=settings.subset
    )
    federation = fed_cdp_settings.Config()
    trained = fed_cdp_settings.complete(
        fed_cdp_settings.Settings(source, federation)
    ).run
    task = clients.load(source, trained)
    count = min(run.clients, len(task.train))
    rows, size = clients.deal(task, trained, count, run.seed)
    if run.images > size:
        raise ConfigError(
            f"--images: expected at most {size}, the rows of a client, got {run.images}"
        )
    owned = np.asarray(rows.x).reshape(count, size)
    positions = _first_unused(owned, task.labels, run)
    x = np.asarray(task.pool)[positions].astype(np.float32) / np.float32(task.white)
    public = np.asarray(task.pool)[task.validation]
    others = public.mean(axis=0) / task.white
    targets = Targets(
        task.name,
        len(x),
        x.shape[1:],
        int(task.labels.max()) + 1,
        others.astype(np.float32),
        Gaussian.fit(public / task.white) if run.prior == "public" else None,
        task.model,
        task.files,
    )
    return targets, Truth(x, task.labels[positions])


def first(truth: Truth, count: int) -> Truth:
    """The first `count` images of every client."""
    return Truth(truth.x[:, :count], truth.y[:, :count])


def _first_unused(owned: np.ndarray, labels: np.ndarray, run: Config) -> np.ndarray:
    """`[C, N]` of `owned [C, rows]`: of each row the first that no earlier one has."""
    used: set[int] = set()
    chosen = []
    for row in owned:
        mine = [p for p in dict.fromkeys(row.tolist()) if p not in used]
        if run.one_label and mine:
            most = np.bincount(labels[mine]).argmax()
            mine = [p for p in mine if labels[p] == most]
        mine = mine[: run.images]
        if len(mine) < run.images:
            break
        used.update(mine)
        chosen.append(mine)
    if len(chosen) < run.clients:
        alike = " of one label" if run.one_label else ""
        raise ConfigError(
            f"--clients: expected fewer than {run.clients}, of whom {len(chosen)} have "
            f"--images={run.images} images{alike} each that no other client has"
        )
    return np.array(chosen)
