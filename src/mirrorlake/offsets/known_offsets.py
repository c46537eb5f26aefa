"""Where logs begin and end, for those to whom some time is no matter. Pure.

A log begins elsewhere only when retention deletes what is oldest, and of thousands of logs that is
asked for once a minute. It matters at once where something waits behind it: what was deleted is
no longer waited for. And of thousands of logs most end where they did.
"""

from collections.abc import Callable, Collection, Hashable, Mapping

from mirrorlake.offsets.positions import TopicAndPartition

#: How often the starts of all logs are asked for, seconds; brokers delete what is too old every
#: five minutes.
STARTS_SECONDS = 60.0
#: From how many logs on all are asked for less often.
SPREAD_FROM = 2_000


def spread(seconds: float, logs: int) -> float:
    """How often all of so many logs are asked for that would be each `seconds` if they were fewer:
    what it costs a second, here and at the brokers, does not grow with them from SPREAD_FROM on."""
    return seconds * max(1.0, logs / SPREAD_FROM)


class KnownOffsets:
    """What one asker knows of where logs begin, or of where they end. For one thread."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._all_at = float("-inf")
        #: What was asked about last, and what was answered; where nothing moves that stays.
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
        object as before where none was asked for.

        `logs` says which log is a partition's now, such as its generation, where a topic may be
        made again: what was known of another log is not taken for it. `ask` is asked for the
        `moving` ones and those that are not known, and `every` so many seconds for all; what it
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
