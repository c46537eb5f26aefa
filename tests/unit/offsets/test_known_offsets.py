"""Starts of logs: asked for where they say how late a flow is, and of all others once a minute."""

from collections.abc import Collection, Mapping

from mirrorlake.offsets.known_offsets import STARTS_SECONDS, KnownOffsets
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition

KEYS = [("t", number) for number in range(4)]


class Source:
    """Its logs begin at `starts`; leaders in `silent` do not answer."""

    def __init__(self) -> None:
        self.starts = dict.fromkeys(KEYS, 0)
        self.silent: set[TopicAndPartition] = set()
        self.asked: list[set[TopicAndPartition]] = []

    def ask(self, keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, int]:
        self.asked.append(set(keys))
        return {key: self.starts[key] for key in keys if key not in self.silent}


def places(generation: int = 0) -> dict[TopicAndPartition, PartitionGeneration]:
    return {key: PartitionGeneration(*key, generation) for key in KEYS}


def test_all_are_asked_for_once_a_minute() -> None:
    source, starts = Source(), KnownOffsets()
    assert starts.of(0.0, places(), source.ask) == dict.fromkeys(KEYS, 0)
    source.starts = dict.fromkeys(KEYS, 7)
    assert starts.of(STARTS_SECONDS - 1, places(), source.ask) == dict.fromkeys(KEYS, 0)
    assert starts.of(STARTS_SECONDS, places(), source.ask) == dict.fromkeys(KEYS, 7)
    assert source.asked == [set(KEYS), set(KEYS)]


def test_where_a_flow_is_late_the_start_is_the_one_of_now() -> None:
    """What retention has deleted is no longer waited for."""
    source, starts = Source(), KnownOffsets()
    starts.of(0.0, places(), source.ask)
    source.starts = dict.fromkeys(KEYS, 7)
    assert starts.of(10.0, places(), source.ask, {KEYS[2]}) == {
        **dict.fromkeys(KEYS, 0),
        KEYS[2]: 7,
    }


def test_a_topic_that_was_made_again_begins_where_its_own_log_does() -> None:
    source, starts = Source(), KnownOffsets()
    source.starts = dict.fromkeys(KEYS, 1_000)
    starts.of(0.0, places(), source.ask)
    source.starts = dict.fromkeys(KEYS, 0)
    assert starts.of(1.0, places(1), source.ask) == dict.fromkeys(KEYS, 0)


def test_a_leader_that_does_not_answer_is_asked_again() -> None:
    source, starts = Source(), KnownOffsets()
    starts.of(0.0, places(), source.ask)
    source.silent = {KEYS[0], KEYS[1]}
    late = starts.of(1.0, places(), source.ask, {KEYS[0]})
    assert late.keys() == set(KEYS[1:]), "what is asked for and not answered is not known"
    source.silent = set()
    assert starts.of(2.0, places(), source.ask).keys() == set(KEYS)
    assert source.asked[1:] == [{KEYS[0]}, {KEYS[0]}]
