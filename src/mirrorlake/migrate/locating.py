"""Translates positions in one copy into positions in the other: reads and matches the records
around each, in several threads."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.answered_offsets import Bounds
from mirrorlake.lake.translate import translate_all
from mirrorlake.migrate.matching import (
    UNKNOWN,
    Counterpart,
    align,
    translate_to_ours,
    translate_to_theirs,
)
from mirrorlake.migrate.reading import Read, log_of, read_stretch
from mirrorlake.migrate.syncs import AHEAD, LOOK_BACK, MARGIN, MOST, Sync, window_back, window_of
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.encoding import Hops
from mirrorlake.spark.tasks import deal
from mirrorlake.threads import side_by_side
from mirrorlake.verify.log_reader import LogReader

#: How many threads read.
READERS = 4
#: How many records on either side of a position determine its time.
_NEAR = 25
TRIMMED = "the copy begins after the position"
SILENT = "the leader of a copy does not say what it has"


@dataclass(frozen=True)
class Pair:
    """A source partition with MirrorMaker 2's copy of it and ours."""

    topic: str
    theirs: str
    ours: str
    partition: int

    @property
    def source(self) -> TopicAndPartition:
        """The source partition."""
        return self.topic, self.partition

    @property
    def copy(self) -> TopicAndPartition:
        """MirrorMaker 2's copy."""
        return self.theirs, self.partition

    @property
    def own(self) -> TopicAndPartition:
        """This flow's copy."""
        return self.ours, self.partition


@dataclass(frozen=True)
class Located:
    """A place, and the method that located it: sync (MirrorMaker 2's offset syncs) or content
    (timestamps)."""

    place: Counterpart
    method: str


@dataclass(frozen=True)
class _Job:
    """The ranges of offsets to read for one position, ends exclusive; None if only timestamps can
    tell. `begin` is the offset in `ours` of the first record of `theirs`, if known."""

    pair: Pair
    position: int
    theirs: tuple[int, int] | None = None
    ours: tuple[int, int] | None = None
    begin: int | None = None


class Locator:
    """Locates positions of one flow, from MirrorMaker 2's copies in ours or (`back`) the reverse.
    For use by one thread."""

    def __init__(
        self,
        route: Route,
        syncs: Mapping[TopicAndPartition, Sequence[Sync]],
        hops: Hops | None,
        back: bool,
    ) -> None:
        self._lake, self._connections = route.lake, route.connections
        self._flow, self._target = route.flow.name, route.flow.target
        self._syncs, self._hops, self._back = syncs, hops, back
        self._bounds: dict[TopicAndPartition, Bounds] = {}

    def locate(self, asked: Sequence[tuple[Pair, int]]) -> dict[tuple[Pair, int], Located]:
        """Translate positions by both copies' current records; they have no counterpart while the
        leader of one does not answer. Raises ClusterUnusable."""
        asked = sorted(set(asked), key=lambda place: (*place[0].copy, place[1]))
        bounds = self._bounds = self._read_bounds(
            [key for pair, _ in asked for key in (pair.copy, pair.own)]
        )
        known = [place for place in asked if {place[0].copy, place[0].own} <= bounds.keys()]
        located = dict.fromkeys(
            asked, Located(Counterpart(None, False, SILENT, behind=True), "none")
        )
        jobs = self._back_jobs(known) if self._back else self._jobs(known)
        for part in side_by_side(self._part, deal(jobs, READERS)):
            located.update(part)
        return located

    def _read_bounds(self, keys: Sequence[TopicAndPartition]) -> dict[TopicAndPartition, Bounds]:
        admin = self._connections.admin(self._target)
        starts = admin.start_offsets(keys, skip_silent=True)
        ends = admin.end_offsets(keys, skip_silent=True)
        return {
            key: Bounds(starts[key], ends[key]) for key in keys if key in starts and key in ends
        }

    def _jobs(self, asked: Sequence[tuple[Pair, int]]) -> list[_Job]:
        """What to read for positions in MirrorMaker 2's copies: its syncs lead to source offsets,
        and our map from those to our copy."""
        windows = {}
        for pair, position in asked:
            window = window_of(self._syncs.get(pair.source, ()), position, *self._bounds[pair.copy])
            if window is not None:
                windows[pair, position] = window
        ends = {
            (*pair.source, offset)
            for (pair, _), window in windows.items()
            for offset in (window.source_first, window.source_end, window.source_begin)
            if offset is not None
        }
        translated = translate_all(self._lake, self._flow, ends)
        jobs = []
        for pair, position in asked:
            window = windows.get((pair, position))
            first = window and translated.get((*pair.source, window.source_first))
            last = window and translated.get((*pair.source, window.source_end))
            if window is None or not first or not last:
                jobs.append(_Job(pair, position))
                continue
            # our copy may go on already behind the map's end
            end = last.offset if last.exact else self._bounds[pair.own].end
            source = window.source_begin
            begin = None if source is None else translated.get((*pair.source, source))
            jobs.append(
                _Job(
                    pair,
                    position,
                    theirs=(window.first, window.end),
                    ours=(first.offset, end),
                    begin=begin.offset if begin and begin.exact else None,
                )
            )
        return jobs

    def _back_jobs(self, asked: Sequence[tuple[Pair, int]]) -> list[_Job]:
        """The same for positions in our copies: the map leads to source offsets, and the syncs from
        those to MirrorMaker 2's copy."""
        places = [(*pair.own, position) for pair, position in asked]
        translated = translate_all(self._lake, self._flow, places, reverse=True)
        jobs = []
        for pair, position in asked:
            there = translated.get((*pair.own, position))
            syncs = self._syncs.get(pair.source, ())
            if there and (window := window_back(syncs, there.offset, *self._bounds[pair.copy])):
                near = (position - 2 * MARGIN, position + MARGIN)
                jobs.append(_Job(pair, position, window, near))
            else:
                jobs.append(_Job(pair, position))
        return jobs

    def _part(self, jobs: Sequence[_Job]) -> dict[tuple[Pair, int], Located]:
        with (
            log_of(self._connections, self._target) as theirs,
            log_of(self._connections, self._target) as ours,
        ):
            return {(job.pair, job.position): self._located(job, theirs, ours) for job in jobs}

    def _located(self, job: _Job, theirs: LogReader, ours: LogReader) -> Located:
        if job.position < self._bounds[job.pair.own if self._back else job.pair.copy].start:
            return Located(Counterpart(None, False, TRIMMED), "content")
        if job.theirs is not None and job.ours is not None:
            their = self._read(theirs, job.pair.copy, job.theirs)
            own = self._read(ours, job.pair.own, job.ours)
            place = self._matched(job.position, their, own, job.begin)
            if place.exact or place.behind:
                return Located(place, "sync")
        return Located(self._by_time(job, theirs, ours), "content")

    def _by_time(self, job: _Job, theirs: LogReader, ours: LogReader) -> Counterpart:
        """Locate a position by the timestamps of the records around it, which both copies take from
        the source."""
        at, pair = job.position, job.pair
        if self._back:
            known = self._read(ours, pair.own, (at - 2 * MARGIN, at + MARGIN))
            if (span := self._span(theirs, pair.copy, known, at)) is not None:
                return self._matched(at, self._read(theirs, pair.copy, span), known)
            return UNKNOWN_PLACE
        known = self._read(theirs, pair.copy, (at - LOOK_BACK, at + AHEAD))
        if (span := self._span(ours, pair.own, known, at)) is not None:
            return self._matched(at, known, self._read(ours, pair.own, span))
        return UNKNOWN_PLACE

    def _span(
        self, log: LogReader, key: TopicAndPartition, known: Read, position: int
    ) -> tuple[int, int] | None:
        """The range of the other copy with the times around a position, wide enough for repeated
        records; None if it is too long."""
        middle = int(np.searchsorted(known.stretch.offsets, position))
        near = known.timestamps[max(0, middle - _NEAR) : middle + _NEAR]
        bounds = self._bounds[key]
        if not len(near):
            return bounds if bounds.end - bounds.start <= MOST else (bounds.end - MOST, bounds.end)
        first, last = (log.offset_at(key, int(time)) for time in (near.min(), near.max()))
        span = (
            max(bounds.start, first - LOOK_BACK - MARGIN),
            min(bounds.end, last + LOOK_BACK + MARGIN),
        )
        return None if span[1] - span[0] > MOST else span

    def _read(self, log: LogReader, key: TopicAndPartition, span: tuple[int, int]) -> Read:
        return read_stretch(log, key, *span, bounds=self._bounds[key], hops=self._hops)

    def _matched(
        self, position: int, theirs: Read, ours: Read, begin: int | None = None
    ) -> Counterpart:
        index = 0 if begin is None else bisect_left(ours.stretch.offsets, begin)
        aligned = align(theirs.stretch.digests, ours.stretch.digests, index)
        onto = translate_to_theirs if self._back else translate_to_ours
        return onto(position, theirs.stretch, ours.stretch, aligned)


UNKNOWN_PLACE = Counterpart(None, False, UNKNOWN)
