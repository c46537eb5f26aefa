"""Which small files of the stage may become one: files with no other file's records of a partition
between theirs. Pure.

A file whose offsets lie both before and behind those of another one cannot be read in order by
reading files one after another (`produce/batch.py`: the rows are sorted then). A burst between two
quiet times leaves just that: a large file between small ones.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from mirrorlake.offsets.stage_index import StageIndex

#: A partition, and how many of its ranges in files outside of the choice lie before a file's.
_Place = tuple[tuple[str, str, int], int]


def mergeable(index: StageIndex, sizes: Mapping[str, int], max_bytes: int) -> list[str]:
    """The first of some files (path: bytes; in the order in which they came) that may become one
    file, of `max_bytes` bytes in all; empty if no two may."""
    left = {
        number: size
        for path, size in sizes.items()
        if (number := index.numbers().get(path)) is not None
    }
    places = _places(index, left)
    while len(left) > 1:
        group = _first_group(left, places, max_bytes)
        # A file that was left out may lie between two that were taken: a merged file came late,
        # with old offsets.
        if len(group) > 1 and _agree(
            place for of in _places(index, group).values() for place in of
        ):
            return [index.path(file) for file in group]
        left.pop(next(iter(left)))
    return []


def _places(index: StageIndex, files: Collection[int]) -> Mapping[int, set[_Place]]:
    """Files' places in each partition with their records: two in one place are neighbours."""
    by_file: dict[int, set[_Place]] = defaultdict(set)
    wanted, oldest = list(files), min(files, default=0)
    for cluster, topic, partition, ranges in index.parts():
        if ranges.newest_file < oldest:
            continue  # as most of thousands of partitions, of which young files hold few
        numbers = np.frombuffer(ranges.columns()[-1], np.int64)
        chosen = np.isin(numbers, wanted)
        before = np.cumsum(~chosen)[chosen]
        for file, others in zip(numbers[chosen].tolist(), before.tolist(), strict=True):
            by_file[file].add(((cluster, topic, partition), others))
    return by_file


def _first_group(
    sizes: Mapping[int, int], places: Mapping[int, set[_Place]], max_bytes: int
) -> list[int]:
    """The first file, and all that may join it: in no partition one behind a file left out."""
    group: list[int] = []
    taken: dict[tuple[str, str, int], int] = {}
    closed: set[tuple[str, str, int]] = set()
    total = 0
    for file, size in sizes.items():
        mine = places[file]
        if (
            total + size <= max_bytes
            and closed.isdisjoint(key for key, _ in mine)
            and _agree(mine)
            and all(taken.get(key, others) == others for key, others in mine)
        ):
            group.append(file)
            taken.update(mine)
            total += size
        else:
            closed.update(key for key, _ in mine)
    return group


def _agree(places: Iterable[_Place]) -> bool:
    """Whether each partition occurs with one place only."""
    distinct = set(places)
    return len(distinct) == len({key for key, _ in distinct})
