"""Where the logs of a source begin, as samples have it. Pure.

A log begins elsewhere only when retention deletes what is oldest. That says how late a flow is
where it has not produced what was deleted; of all other partitions it is good to know, and of
thousands of them it is asked for once a minute.
"""

from collections.abc import Callable, Collection, Mapping

from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition

#: How often the starts of all logs are asked for, seconds.
ALL_SECONDS = 60.0


class SampledStarts:
    """What one sampler knows of starts."""

    def __init__(self) -> None:
        self._known: dict[PartitionGeneration, int] = {}
        self._all_at = float("-inf")

    def of(
        self,
        now: float,
        places: Mapping[TopicAndPartition, PartitionGeneration],
        lagging: Collection[TopicAndPartition],
        ask: Callable[[Collection[TopicAndPartition]], Mapping[TopicAndPartition, int]],
    ) -> dict[TopicAndPartition, int]:
        """The first offsets of partitions, by the generation that each is of now (seconds of any
        clock that does not go back). `ask` is asked for the `lagging` ones and those that are not
        known; what it does not answer is missing."""
        if now - self._all_at >= ALL_SECONDS:
            self._known, self._all_at = {}, now
        asked = [key for key in places if key in lagging or places[key] not in self._known]
        answered = ask(asked) if asked else {}
        for key in asked:
            self._known.pop(places[key], None)
        self._known |= {places[key]: start for key, start in answered.items()}
        return {key: self._known[place] for key, place in places.items() if place in self._known}
