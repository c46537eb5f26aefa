"""Which logs of a source are asked for their ends now, if there are many: those that move each
time, and all of them now and then. In between, a watch reports the others. Pure: times are seconds
that the caller gives.

Only how soon the first record of a quiet log is noticed depends on the watch: what it does not
report, such as markers alone, is found when all are asked. Missed logs are counted.
"""

from collections.abc import Collection, Mapping

from mirrorlake.offsets.known_offsets import spread
from mirrorlake.offsets.positions import TopicAndPartition

#: How often all are asked, if they are not more than SPREAD_FROM; and how often once the watch has
#: reported one, as others may have begun too, reported one by one if batches are large.
ALL_SECONDS, SOON_SECONDS = 10.0, 2.0
#: A log that has not moved for so long is left to the watch.
QUIET_SECONDS = 10.0
#: A watch that works reports a log that moves at once. If it has not, this many seconds after
#: asking found the move, then only markers came, or it is deaf.
UNREPORTED_SECONDS = 5.0


class QuietLogs:
    """The known ends of logs. For one thread.

    `ends` are the last ones that were answered; a log that did not answer the last time is missing.
    """

    def __init__(self, taken_seconds: float) -> None:
        """`taken_seconds`: how long until the watch follows a log, asked for until then."""
        self.ends: dict[TopicAndPartition, int] = {}
        self._taken_seconds = taken_seconds
        #: Logs that are asked for each time: since when they rest, and the watch has them.
        self._moved: dict[TopicAndPartition, float] = {}
        self._given: dict[TopicAndPartition, float] = {}
        #: Logs that were left to the watch and were found to have moved, since when.
        self._unreported: dict[TopicAndPartition, float] = {}
        self._all_asked = float("-inf")
        #: Whether the watch has reported a log since all were asked.
        self._has_reported = False

    def due(
        self,
        now: float,
        logs: Collection[TopicAndPartition],
        reported: Collection[TopicAndPartition],
    ) -> Collection[TopicAndPartition]:
        """Those of `logs`, which never change, that are to be asked for now. The watch has
        `reported` some, and no longer watches these."""
        for key in reported:
            self._note_moved(key, now)
            self._unreported.pop(key, None)
        self._has_reported = self._has_reported or bool(reported)
        # A fetch is answered with the first record, so of many logs that begin it reports few.
        seconds = SOON_SECONDS if self._has_reported else spread(ALL_SECONDS, len(logs))
        if now - self._all_asked >= seconds:
            self._all_asked, self._has_reported = now, False
            return logs
        return [*self._moved, *self._given]

    def unreported(self, now: float) -> int:
        """How many logs have moved lately without the report that the watch should have given."""
        return sum(now - since >= UNREPORTED_SECONDS for since in self._unreported.values())

    def answered(
        self,
        now: float,
        asked: Collection[TopicAndPartition],
        ends: Mapping[TopicAndPartition, int],
        reached: Mapping[TopicAndPartition, int],
    ) -> dict[TopicAndPartition, int]:
        """Take the answers to what was asked, and return the logs to give to the watch, with their
        ends: those that are read up to their ends, `reached`, and have been quiet long enough."""
        to_watch: dict[TopicAndPartition, int] = {}
        for key in asked:
            end, before = ends.get(key), self.ends.get(key)
            if end is None:
                self.ends.pop(key, None)
                self._note_moved(key, now)
                continue
            self.ends[key] = end
            watched = key not in self._moved and key not in self._given  # for some time
            if before is not None and end > before and watched:
                self._unreported[key] = now
            if end != reached[key] or before not in (None, end):
                self._note_moved(key, now)
                continue
            since = self._moved.get(key, float("-inf") if before is None else now)
            if now - since >= QUIET_SECONDS:
                to_watch[key] = end
            elif key in self._given and now - self._given[key] >= self._taken_seconds:
                del self._given[key]
        for key in to_watch:
            self._moved.pop(key, None)
            self._unreported.pop(key, None)
            self._given[key] = now
        return to_watch

    def _note_moved(self, key: TopicAndPartition, now: float) -> None:
        self._moved[key] = now
        self._given.pop(key, None)
