"""A topic that may not be written waits with an incident, and is tried again once the rights allow
it, and not at once each time where rights are not what it lacks."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from mirrorlake.control import denied_topics
from mirrorlake.control.denied_topics import NEEDED, PAUSES, DeniedTopics
from mirrorlake.errors import MirrorlakeError, TopicRefused
from mirrorlake.lake.incidents import IncidentKey


class Side:
    """The incidents that are open, the rights, and the time."""

    def __init__(self) -> None:
        self.open: dict[IncidentKey, str] = {}
        self.rights: dict[str, frozenset[str] | None] = {}
        self.asked: list[Collection[str]] = []
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def open_all(self, flow: str, kind: str, errors: Iterable[MirrorlakeError]) -> None:
        self.open |= {IncidentKey(flow, kind, error.topic): str(error) for error in errors}  # type: ignore[attr-defined]

    def settle_all(self, keys: Iterable[IncidentKey], _resolution: str) -> None:
        for key in list(keys):
            del self.open[key]

    def ask(self, names: Collection[str]) -> dict[str, frozenset[str] | None]:
        self.asked.append(sorted(names))
        return {name: self.rights.get(name) for name in names}


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> Side:
    found = Side()
    monkeypatch.setattr(denied_topics, "time", found)
    return found


def topics(side: Side) -> DeniedTopics:
    incidents: Any = side
    return DeniedTopics("east->west", incidents, side.ask)


def refused(topic: str, partition: int = 0) -> TopicRefused:
    return TopicRefused(f"may not WRITE topic east.{topic}", topic=topic, partition=partition)


def test_it_waits_as_long_as_the_right_is_missing(side: Side) -> None:
    denied, names = topics(side), {"a": "east.a", "b": "east.b"}
    denied.add([refused("a"), refused("a", 1)])
    assert list(side.open) == [IncidentKey("east->west", "topic_refused", "a")] and list(
        denied.topics
    ) == ["a"]
    for rights in ({"READ", "DESCRIBE"}, {"WRITE"}, ()):  # without any, it is not even described
        side.rights["east.a"] = frozenset(rights)
        side.now += 1_000
        denied.resume(names)
        assert list(denied.topics) == ["a"] and side.open
    side.rights["east.a"] = NEEDED
    denied.resume(names)
    assert not denied.topics and not side.open and side.asked == [["east.a"]] * 4, (
        "what is not refused is not asked for"
    )


def test_where_rights_do_not_help_it_is_tried_ever_more_seldom(side: Side) -> None:
    denied, names = topics(side), {"a": "east.a"}
    for pause in (*PAUSES, PAUSES[-1]):
        denied.add([refused("a")])
        side.now += pause - 1
        denied.resume(names)
        assert list(denied.topics) == ["a"]
        side.now += 1
        denied.resume(names)
        assert not denied.topics
    side.now += 3 * PAUSES[-1]
    denied.add([refused("a")])
    side.now += PAUSES[0]
    denied.resume(names)
    assert not denied.topics, "that was another time"


def test_one_that_has_no_name_at_the_target_any_more_waits(side: Side) -> None:
    denied = topics(side)
    denied.add([refused("a")])
    side.now += 1_000
    denied.resume({})
    assert list(denied.topics) == ["a"] and not side.asked
