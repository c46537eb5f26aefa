"""The order in which to read files so that the offsets of every partition rise. Pure."""

import heapq
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from mirrorlake.offsets.partition_ranges import FileRange


def chain_of(held: Sequence[FileRange]) -> list[int] | None:
    """The files of ranges in the order of their offsets; None if ranges overlap."""
    if any(one.last >= two.first for one, two in zip(held, held[1:], strict=False)):
        return None
    return [file_range.file for file_range in held]


def in_order(chains: Sequence[Sequence[int]]) -> list[int] | None:
    """An order of files that keeps each partition's own, older first; None if there is none."""
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for chain in chains:
        for file in chain:
            sorter.add(file)
        for before, behind in zip(chain, chain[1:], strict=False):
            if before != behind:
                sorter.add(behind, before)
    try:
        sorter.prepare()
    except CycleError:
        return None
    order: list[int] = []
    ready = list(sorter.get_ready())
    heapq.heapify(ready)
    while ready:
        file = heapq.heappop(ready)
        order.append(file)
        sorter.done(file)
        for other in sorter.get_ready():
            heapq.heappush(ready, other)
    return order
