"""What an adversary knows of a table's encoding: no row of it."""

from typing import NamedTuple

import numpy as np


class Group(NamedTuple):
    """Inputs of which one is on, and the others off.

    Attributes:
      columns: their places among the inputs.
      reference: whether all may be off; so it is where a category has no column, and for
        a single column of zeros and ones.
    """

    columns: tuple[int, ...]
    reference: bool = False


class Schema(NamedTuple):
    """Inputs `D`: one-hot groups and `Dn` numbers, encoded as `(raw - mean) / scale`.

    Attributes:
      groups: disjoint; what is in none is a number.
      numbers: `[Dn]` places of the numbers.
      mean: `[D]`.
      scale: `[D]`, above 0.
      low: `[Dn]` least raw value of each number.
      high: `[Dn]` largest one.
      whole: `[Dn]` bool, whether only integers occur.
    """

    groups: tuple[Group, ...]
    numbers: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray
    whole: np.ndarray

    @property
    def off(self) -> np.ndarray:
        """Encoded 0 of every input `[D]`."""
        return -self.mean / self.scale

    @property
    def on(self) -> np.ndarray:
        """Encoded 1 of every input `[D]`."""
        return (1 - self.mean) / self.scale

    def range(self, slack: float) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest encoded number `[Dn]`, widened by `slack` deviations."""
        mean, scale = self.mean[self.numbers], self.scale[self.numbers]
        return (self.low - mean) / scale - slack, (self.high - mean) / scale + slack

    def read(self, x: np.ndarray) -> np.ndarray:
        """Raw rows `[n, D]`: the likeliest category of every group, numbers in range.

        Args:
          x: `[n, D]` encoded rows, not necessarily ones of the table.
        """
        raw = x * self.scale + self.mean
        for group in self.groups:
            columns = list(group.columns)
            block = raw[:, columns]
            if group.reference:
                block = np.concatenate([block, 1 - block.sum(1, keepdims=True)], axis=1)
            chosen = block.argmax(axis=1)
            raw[:, columns] = chosen[:, None] == np.arange(len(columns))
        numbers = np.clip(raw[:, self.numbers], self.low, self.high)
        raw[:, self.numbers] = np.where(self.whole, np.round(numbers), numbers)
        return raw

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """Encoded rows `[n, D]` float32 of raw ones."""
        return ((raw - self.mean) / self.scale).astype(np.float32)

    def snapped(self, x: np.ndarray) -> np.ndarray:
        """Encoded rows `[n, D]` as read and encoded again."""
        return self.encode(self.read(x))
