"""Where a log's records are in another one that has them in the same order, among others. Pure."""

from collections.abc import Iterator

import numpy as np


def places_in(wanted: np.ndarray, held: np.ndarray) -> np.ndarray | None:
    """For each of `wanted` its index in `held`, -1 if there is no equal one; the others rise. None
    if there is no such assignment, or more than one: then it cannot be known."""
    present = np.isin(wanted, held)
    asked, there = wanted[present].tolist(), held.tolist()
    earliest = list(_earliest(asked, there))
    latest = [len(there) - 1 - at for at in _earliest(asked[::-1], there[::-1])][::-1]
    if len(earliest) < len(asked) or earliest != latest:
        return None
    places = np.full(len(wanted), -1, np.int64)
    places[present] = earliest
    return places


def _earliest(wanted: list[int], held: list[int]) -> Iterator[int]:
    """Each value's earliest index behind that of the one before; ends at the first without."""
    rest = enumerate(held)
    for one in wanted:
        at = next((at for at, other in rest if other == one), None)
        if at is None:
            return
        yield at
