"""The ends of a source's logs, as a landing query asks for them."""

import logging
import math
import time
from collections.abc import Collection

from confluent_kafka import KafkaException

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.arriving_ends import ArrivingEnds
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.landing.quiet_logs import QuietLogs
from mirrorlake.native.library import NativeUnavailable
from mirrorlake.native.selfcheck import problem
from mirrorlake.native.watch import WAIT_SECONDS, LogWatch
from mirrorlake.offsets.as_of import noted_ends, reaches_all
from mirrorlake.offsets.positions import Ends, TopicAndPartition

logger = logging.getLogger(__name__)

#: How long no leader may answer before the query fails, seconds.
PATIENCE_SECONDS = 20.0
#: From how many partitions on quiet ones are watched, not asked: a watch is its own client.
WATCHED_FROM = 200
#: The pause between two notes of log ends, as a multiple of the CPU time of one: a note asks for
#: all partitions, whichever moved.
_NOTES_SHARE = 100.0
#: How long all partitions are asked after a watch has failed, until another one is opened, seconds.
_WATCH_AGAIN_SECONDS = 60.0
#: The least time between two replacements of a watch that did not report logs that moved, seconds:
#: no watch reports a log that gets only markers.
_DEAF_SECONDS = 600.0
#: How long brokers must have named no error for a log until logs are watched again, seconds.
CALM_SECONDS = 15.0


class SourceEnds:
    """Asks one cluster for ends as often as batches are planned. Ends are last stable offsets."""

    def __init__(self, alias: str, client: Settings) -> None:
        self._admin = ClusterAdmin(alias, client)
        self._arriving = ArrivingEnds(self._admin)
        self._client = client
        self._heard = time.monotonic()
        self._quiet = QuietLogs(2 * WAIT_SECONDS)
        self._watch: LogWatch | None = None
        self._watch_from = 0.0
        self._deaf_from = float("-inf")
        self._next_note = 0.0

    def all(self, keys: Collection[TopicAndPartition]) -> Ends:
        """The ends of all partitions. Raises ClusterUnreachable if one is not reported."""
        return self._admin.end_offsets(keys, committed=True)

    def known(self, reached: Ends) -> Ends:
        """The reported ends of a query's partitions, which are planned up to `reached`; with many
        partitions, quiet ones as of some seconds ago. Raises ClusterUnreachable when no leader has
        answered for long. If only one leader does not answer, its partition stays where it is,
        until the landing worker finds out why."""
        if len(reached) < WATCHED_FROM or time.monotonic() < self._watch_from:
            return self._asked(reached)
        try:
            return self._watched(reached)
        except (KafkaException, NativeUnavailable) as error:
            logger.warning("all partitions are asked for their ends: %s", error)
            self._end_watch(time.monotonic() + _WATCH_AGAIN_SECONDS)
            return self._asked(reached)

    def noted(self, ends: Ends, log_ends: Ends) -> str | None:
        """The note of a batch that ends at `ends`: which logs go on behind. None unless it reaches
        all of `log_ends`, or if the batch before noted it just now, and it takes long."""
        if time.monotonic() < self._next_note or not reaches_all(ends, log_ends):
            return None
        began = time.process_time()
        later = self._admin.end_offsets(list(ends), committed=False, skip_silent=True)
        self._next_note = time.monotonic() + _NOTES_SHARE * (time.process_time() - began)
        return noted_ends(ends, later)

    def close(self) -> None:
        """Let go of the client that watches."""
        self._end_watch()

    def _watched(self, reached: Ends) -> Ends:
        """The current ends of logs that move; a watch reports those that begin to."""
        now = time.monotonic()
        if now - self._arriving.refused_at < CALM_SECONDS:
            return self._unwatched(now, reached)
        if self._watch is None:
            self._watch, self._quiet = open_watch(self._client), QuietLogs(2 * WAIT_SECONDS)
        if self._watch is None:
            self._watch_from = math.inf
            return self._asked(reached)
        asked = self._quiet.due(now, reached, self._watch.moved())
        if now - self._deaf_from >= _DEAF_SECONDS and (unreported := self._quiet.unreported(now)):
            logger.log(
                logging.WARNING if math.isinf(self._deaf_from) else logging.INFO,
                "%d logs of cluster %s moved, and their watch told of none of them, as where only "
                "markers come; another one is opened",
                unreported,
                self._admin.alias,
            )
            self._deaf_from = now
            self._end_watch(now)
            return self._watched(reached)
        ends = self._asked(asked)
        self._watch.watch(self._quiet.answered(time.monotonic(), asked, ends, reached))
        return self._quiet.ends

    def _unwatched(self, now: float, reached: Ends) -> Ends:
        """The same while logs get new leaders, when a watch may end the process
        (docs/not_obvious.md): a log that begins to move is noticed when all are asked."""
        self._end_watch(now)
        asked = self._quiet.due(now, reached, ())
        self._quiet.answered(now, asked, self._asked(asked), reached)
        return self._quiet.ends

    def _asked(self, keys: Collection[TopicAndPartition]) -> Ends:
        ends = self._arriving.of(keys)
        now = time.monotonic()
        if ends or not keys:
            self._heard = now
        elif now - self._heard > PATIENCE_SECONDS:
            raise ClusterUnreachable(
                f"no leader of cluster {self._admin.alias} reports the ends of its partitions; it "
                "is asked again",
                alias=self._admin.alias,
            )
        return ends

    def _end_watch(self, until: float = math.inf) -> None:
        """Close the watch, and open none before `until`, by time.monotonic()."""
        watch, self._watch, self._watch_from = self._watch, None, until
        if watch is not None:
            watch.close()


def open_watch(client: Settings) -> LogWatch | None:
    """A watch of a cluster's logs; None without the compiled part: all are asked for their ends."""
    return LogWatch(client) if problem() is None else None
