"""How far a landing has come over offsets without a record, such as transaction markers, for the
processes that produce what it lands: the stage does not show it, and a partition that rests behind
a marker would lag there for ever.
"""

import json
import logging
from collections.abc import Mapping

from mirrorlake.lake.lake import Lake
from mirrorlake.landing.source_comparison import CurrentGenerations
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition

logger = logging.getLogger(__name__)


class CoveredNotes:
    """A file in the lake with the covered ends of one source cluster."""

    def __init__(self, lake: Lake, alias: str) -> None:
        self._alias = alias
        self._file = lake.leases / "landing-covered" / f"{alias}.json"
        self._before: Mapping[TopicAndPartition, int] = {}
        self._known: dict[PartitionGeneration, int] = {}  # as last written, or read

    def note(
        self,
        covered: Mapping[TopicAndPartition, int],
        current: CurrentGenerations,
        is_over: bool = False,
    ) -> None:
        """Write the covered ends of partitions that have not moved since the last call, or of all
        once landing `is_over`; nothing if known. Partitions that move have records."""
        resting = {
            key: end for key, end in covered.items() if is_over or self._before.get(key) == end
        }
        self._before = dict(covered)
        news = {current.place(key): end for key, end in resting.items()}
        if all(self._known.get(place) == end for place, end in news.items()):
            return
        living = {
            place: end
            for place, end in self._known.items()
            if place == current.place(place.topic_partition)
        }
        rows = [[*place, end] for place, end in sorted({**living, **news}.items())]
        try:
            self._file.write(json.dumps(rows, ensure_ascii=False).encode())
        except OSError as error:
            logger.warning(
                "landing from cluster %s: how far it has come was not noted: %s; it is tried again",
                self._alias,
                error,
            )
        else:
            self._known = {**living, **news}

    def read(self) -> Mapping[PartitionGeneration, int]:
        """How far the landing process has covered partitions; as last read, if that fails now."""
        try:
            rows = json.loads(self._file.read())
            self._known = {PartitionGeneration(*place): end for *place, end in rows}
        except FileNotFoundError:
            self._known = {}
        except (OSError, ValueError) as error:
            logger.warning(
                "how far cluster %s is landed by another process cannot be read: %s",
                self._alias,
                error,
            )
        return self._known
