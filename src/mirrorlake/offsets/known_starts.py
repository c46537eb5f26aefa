"""Where logs begin, for those to whom a minute is no matter. Pure.

A log begins elsewhere only when retention deletes what is oldest, and of thousands of logs that is
asked for once a minute. It matters at once where something waits behind it: what was deleted is
no longer waited for.
"""

from collections.abc import Callable, Collection, Hashable, Mapping

from mirrorlake.offsets.positions import TopicAndPartition

#: How often the starts of all logs are asked for, seconds; brokers delete what is too old every
#: five minutes.
ALL_SECONDS = 60.0


class KnownStarts:
    """What one asker knows of starts. For one thread."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._all_at = float("-inf")

    def forget(self) -> None:
        """Ask for all of them the next time."""
        self._all_at = float("-inf")

    def of(
        self,
        now: float,
        logs: Mapping[TopicAndPartition, Hashable],
        ask: Callable[[Collection[TopicAndPartition]], Mapping[TopicAndPartition, int]],
        lagging: Collection[TopicAndPartition] = (),
    ) -> dict[TopicAndPartition, int]:
        """The first offsets of partitions (`now`: seconds of a clock that does not go back).

        `logs` says which log is a partition's now, such as its generation, where a topic may be
        made again: what was known of another log is not taken for it. `ask` is asked for the
        `lagging` ones and those that are not known; what it does not answer is missing.
        """
        if now - self._all_at >= ALL_SECONDS:
            self._known, self._all_at = {}, now
        asked = [key for key, log in logs.items() if key in lagging or log not in self._known]
        answered = ask(asked) if asked else {}
        for key in asked:
            self._known.pop(logs[key], None)
        self._known |= {logs[key]: start for key, start in answered.items()}
        return {key: self._known[log] for key, log in logs.items() if log in self._known}
