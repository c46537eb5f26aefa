"""From which offset on a source's log differs from what was staged of it. Pure.

A log's end goes back when a replica that lacks records becomes leader, or when a disk is restored
from a copy. What is written then gets offsets that are staged already. A leader writes its epoch
into every batch (KIP-320): as long as the records at the end of what is staged are of the epoch
known, nothing changed below; what is of one newer epoch was either staged as it is, or differs from
there on.
"""

from collections.abc import Callable, Collection, Mapping

from mirrorlake.kafka.values import Row
from mirrorlake.offsets.positions import TopicAndPartition

OffsetBounds = tuple[int, int]
"""Offsets: the first, and the one after the last."""
AskRows = Callable[[Mapping[TopicAndPartition, int]], "Mapping[TopicAndPartition, Row]"]
"""Gives the first record of each partition at or behind an offset."""


def first_offsets(
    bounds: Mapping[TopicAndPartition, OffsetBounds],
    rows: AskRows,
    holds: Callable[[Mapping[TopicAndPartition, Row]], Collection[TopicAndPartition]],
    beyond: Collection[TopicAndPartition] = (),
) -> dict[TopicAndPartition, int]:
    """The offset, within bounds, from which on something holds for all records of a partition: the
    one after the last record for which it does not. A partition of which it holds nowhere is
    missing; of those `beyond` it holds behind their bounds, whatever lies within.

    All partitions are asked side by side, and the last record of each first: mostly it holds for
    none.
    """
    left, ends = dict(bounds), {key: end for key, (_, end) in bounds.items()}
    asked, done = {key: end - 1 for key, end in ends.items()}, set(beyond)
    while left := {key: bound for key, bound in left.items() if bound[0] < bound[1]}:
        found = rows({key: asked[key] for key in left})
        probed = {key: row for key, row in found.items() if row.offset < left[key][1]}
        true = holds(probed)
        for key, (low, high) in list(left.items()):
            if key in probed and key not in true:
                low = probed[key].offset + 1
            else:  # it holds, or there is no record from here on: compacted, or aborted
                high = asked[key]
                if key in true:
                    done.add(key)
            ends[key] = high
            left[key], asked[key] = (low, high), (low + high) // 2
    return {key: ends[key] for key in done}
