"""Where the logs of a source end, as a landing query asks for it."""

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
from mirrorlake.offsets.as_of import noted_ends
from mirrorlake.offsets.positions import Ends, TopicAndPartition

logger = logging.getLogger(__name__)

#: How long no leader may answer before the query fails, seconds.
PATIENCE_SECONDS = 20.0
#: From how many partitions on quiet ones are watched, instead of being asked for each time: a
#: watch is a client of its own.
WATCHED_FROM = 200
#: How many times the CPU time of one note of log ends is waited for until the next one: a note asks
#: for all partitions, whichever moved.
_NOTES_SHARE = 100.0
#: How long all partitions are asked for after a watch has failed, until another one is opened,
#: seconds.
_WATCH_AGAIN_SECONDS = 60.0
#: How often a watch that did not tell of logs that moved makes way for another one at most,
#: seconds: where only markers come, no watch tells.
_DEAF_SECONDS = 600.0


class SourceEnds:
    """Asks one cluster, as often as batches are planned: ends are last stable offsets."""

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
        """Those of all partitions. Raises ClusterUnreachable where one is not reported."""
        return self._admin.end_offsets(keys, committed=True)

    def known(self, reached: Ends) -> Ends:
        """Those that are reported of the partitions of a query, which is planned up to `reached`;
        where they are many, quiet ones as they were some seconds ago. Raises ClusterUnreachable
        when no leader answers for long; a partition whose leader alone does not answer stays where
        it is, until the landing worker finds out why."""
        if len(reached) < WATCHED_FROM or time.monotonic() < self._watch_from:
            return self._asked(reached)
        try:
            return self._watched(reached)
        except (KafkaException, NativeUnavailable) as error:
            logger.warning("all partitions are asked for their ends: %s", error)
            self._end_watch(time.monotonic() + _WATCH_AGAIN_SECONDS)
            return self._asked(reached)

    def noted(self, ends: Ends) -> str | None:
        """What a batch that comes to the ends of all its logs notes of those that go on behind;
        None where the one before noted it just now, and it takes long."""
        if time.monotonic() < self._next_note:
            return None
        began = time.process_time()
        later = self._admin.end_offsets(list(ends), committed=False, skip_silent=True)
        self._next_note = time.monotonic() + _NOTES_SHARE * (time.process_time() - began)
        return noted_ends(ends, later)

    def close(self) -> None:
        """Let go of the client that watches."""
        self._end_watch()

    def _watched(self, reached: Ends) -> Ends:
        """Ends of what moves as they are now; a watch tells what begins to."""
        if self._watch is None:
            self._watch = open_watch(self._client)
        if self._watch is None:
            self._watch_from = math.inf
            return self._asked(reached)
        now = time.monotonic()
        asked = self._quiet.due(now, reached, self._watch.moved())
        if now - self._deaf_from >= _DEAF_SECONDS and (untold := self._quiet.untold(now)):
            logger.log(
                logging.WARNING if math.isinf(self._deaf_from) else logging.INFO,
                "%d logs of cluster %s moved, and their watch told of none of them, as where only "
                "markers come; another one is opened",
                untold,
                self._admin.alias,
            )
            self._deaf_from = now
            self._end_watch(now)
            return self._watched(reached)
        ends = self._asked(asked)
        self._watch.watch(self._quiet.answered(time.monotonic(), asked, ends, reached))
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
        """Let go of the watch; `until` then, by time.monotonic(), none is opened."""
        watch, self._watch, self._watch_from = self._watch, None, until
        self._quiet = QuietLogs(2 * WAIT_SECONDS)
        if watch is not None:
            watch.close()


def open_watch(client: Settings) -> LogWatch | None:
    """A watch of the logs of a cluster; None where the compiled part cannot be used, and all have
    to be asked for their ends."""
    return LogWatch(client) if problem() is None else None
