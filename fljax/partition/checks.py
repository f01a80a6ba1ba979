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
    try:
        _, code = np.unique(vector(name, values), return_inverse=True)
    except TypeError as error:  # text beside missing cells
        raise ValueError(f"{name}: expected values of one sortable type") from error
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
    fits = is_whole(value) and 1 <= value <= most
    expect(fits, name, f"an integer in [1, {most}]", value)


def check_many(name: str, value: int) -> None:
    """Refuses what is no integer from 1 on."""
    expect(is_whole(value) and value >= 1, name, "an integer >= 1", value)


def is_whole(value: object) -> bool:
    """Whether it is an integer, one of NumPy's among them."""
    return isinstance(value, numbers.Integral)


def expect(holds: object, name: str, expected: str, got: object) -> None:
    """Raises a ValueError of one line unless `holds`."""
    if not holds:
        raise ValueError(f"{name}: expected {expected}, got {got}")
