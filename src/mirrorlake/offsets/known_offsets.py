"""The known starts and ends of logs, for callers that may see them somewhat late. Pure.

A log's start moves only when retention deletes the oldest records, so of thousands of logs it is
asked for once a minute. It matters at once if records wait behind it: deleted ones are no longer
waited for. And of thousands of logs most end where they did.
"""

from collections.abc import Callable, Collection, Hashable, Mapping

from mirrorlake.offsets.positions import TopicAndPartition

#: How often the starts of all logs are asked for, seconds; brokers delete every five minutes.
STARTS_SECONDS = 60.0
#: From this many logs on, all are asked for less often.
SPREAD_FROM = 2_000


def spread(seconds: float, logs: int) -> float:
    """The interval for asking for all of so many logs, which would be `seconds` for fewer: from
    SPREAD_FROM on, the cost per second, here and at the brokers, does not grow with their
    number."""
    return seconds * max(1.0, logs / SPREAD_FROM)


class KnownOffsets:
    """The starts, or the ends, of logs as one caller knows them. For one thread."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._all_at = float("-inf")
        #: The logs of the last call, and the answer, which is kept while nothing moves.
        self._logs: Mapping[TopicAndPartition, Hashable] = {}
        self._offsets: Mapping[TopicAndPartition, int] | None = None

    def forget(self) -> None:
        """Ask for all of them the next time."""
        self._all_at = float("-inf")

    def of(
        self,
        now: float,
        logs: Mapping[TopicAndPartition, Hashable],
        ask: Callable[[Collection[TopicAndPartition]], Mapping[TopicAndPartition, int]],
        moving: Collection[TopicAndPartition] = (),
        every: float = STARTS_SECONDS,
    ) -> Mapping[TopicAndPartition, int]:
        """The offsets of partitions (`now`: seconds of a clock that does not go back): the same
        object as before if none was asked for.

        `logs` identifies each partition's current log, such as by its generation, if a topic may be
        made again: an offset of another log is not taken for its own. `ask` is called for the
        `moving` and the unknown partitions, and every `every` seconds for all; a partition that it
        does not answer is missing.
        """
        if now - self._all_at >= every:
            self._known, self._all_at, self._offsets = {}, now, None
        if self._offsets is not None and not moving and logs == self._logs:
            return self._offsets
        asked = [key for key, log in logs.items() if key in moving or log not in self._known]
        answered = ask(asked) if asked else {}
        for key in asked:
            self._known.pop(logs[key], None)
        self._known |= {logs[key]: offset for key, offset in answered.items()}
        known = {key: self._known[log] for key, log in logs.items() if log in self._known}
        self._logs, self._offsets = logs, known if len(known) == len(logs) else None
        return known
