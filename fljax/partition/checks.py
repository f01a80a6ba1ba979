"""Arguments of partitions: checks that name what was expected, cuts and groups."""

import numbers

import numpy as np

Parts = list[np.ndarray]
# int64 row numbers, one array per client


def cut(rows: np.ndarray, num_parts: int) -> Parts:
    """Equal parts, the last ones a row larger where there is a rest."""
    small, rest = divmod(len(rows), num_parts)
    sizes = small + (np.arange(num_parts) >= num_parts - rest)
    return np.split(rows, np.cumsum(sizes)[:-1])


def rows_by_value(name: str, values: np.ndarray) -> Parts:
    """Row numbers of each distinct value, in sorted order of the values."""
    _, code = np.unique(vector(name, values), return_inverse=True)
    return np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])


def vector(name: str, values: np.ndarray) -> np.ndarray:
    """A non-empty `[N]` array, or a ValueError."""
    values = np.asarray(values)
    flat = values.ndim == 1 and len(values) > 0
    expect(flat, name, "a non-empty vector", f"shape {values.shape}")
    return values


def check_clients(num_clients: int, num_rows: int) -> None:
    """Refuses more clients than rows, and none."""
    check_range("num_clients", num_clients, num_rows)


def check_range(name: str, value: int, most: int) -> None:
    """Refuses what is not in [1, most]."""
    expect(
        isinstance(value, numbers.Integral) and 1 <= value <= most,
        name,
        f"an integer in [1, {most}]",
        value,
    )


def expect(holds: object, name: str, expected: str, got: object) -> None:
    """Raises a ValueError of one line unless `holds`."""
    if not holds:
        raise ValueError(f"{name}: expected {expected}, got {got}")
