"""Records that were never landed are named, also where retention moves the start of their log while
they are looked up."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.values import Row
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.testing import MemoryCluster
from mirrorlake.verify import coverage
from mirrorlake.verify.not_compared import NOT_STAGED, NotCompared

KEY = ("orders", 0)


class Source:
    """A log of records up to 100, whose start moves each time that a record of it was asked for."""

    def __init__(self, starts: list[int]) -> None:
        self.cluster: Any = MemoryCluster("east", {"orders": [100]})
        self._starts = starts

    def first_rows(
        self, _alias: str, _settings: object, asked: Mapping[TopicAndPartition, int]
    ) -> dict[TopicAndPartition, Row]:
        if self._starts:
            self.cluster.starts[KEY] = self._starts.pop(0)
        start = self.cluster.starts.get(KEY, 0)
        return {
            key: Row(first, 0, None, b"v", None)
            for key, first in asked.items()
            if start <= first < 100
        }


@pytest.mark.parametrize(
    ("starts", "wanted"),
    [([], (0, 99)), ([30], (30, 99)), ([30, 60, 60], (60, 99)), ([100], None)],
    ids=["still", "moves once", "moves again", "all is gone"],
)
def test_what_is_left_of_a_log_is_named(
    monkeypatch: pytest.MonkeyPatch, starts: list[int], wanted: tuple[int, int] | None
) -> None:
    source = Source(starts)
    monkeypatch.setattr(coverage, "first_rows", source.first_rows)
    connections = SimpleNamespace(client=lambda *_: {}, admin=lambda _alias: source.cluster)
    scope: Any = SimpleNamespace(
        flow=SimpleNamespace(source="east"), deployment=SimpleNamespace(connections=connections)
    )
    stretch = NotCompared(*KEY, 0, first=0, last=99, reason=NOT_STAGED)
    found = [(one.first, one.last) for one in coverage._not_staged(scope, [stretch])]
    assert found == ([] if wanted is None else [wanted])


@pytest.mark.parametrize(
    ("there", "hidden", "answers", "found"),
    [
        (True, False, True, (3, 9)),
        (True, False, False, None),
        (False, True, False, None),
        (False, False, False, (0, 0)),
    ],
    ids=["there", "its leader is silent", "it may not be described", "deleted"],
)
def test_what_the_source_has_is_nothing_only_where_it_says_so(
    there: bool, hidden: bool, answers: bool, found: tuple[int, int] | None
) -> None:
    scope: Any = SimpleNamespace(
        source_partitions={KEY} if there else set(),
        hidden={"orders"} if hidden else set(),
        source_bounds={KEY: (3, 9)} if answers else {},
    )
    assert coverage._at_source(scope, KEY) == found


def test_a_leader_that_falls_silent_is_none_without_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it did not give is not known to be nothing."""
    monkeypatch.setattr(coverage, "first_rows", lambda *_: {})

    def silent(_keys: object) -> dict[TopicAndPartition, int]:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))

    admin = SimpleNamespace(start_offsets=silent)
    connections: Any = SimpleNamespace(client=lambda *_: {}, admin=lambda _alias: admin)
    with pytest.raises(ClusterUnusable, match="cluster east cannot be read"):
        coverage._first_rows(connections, "east", {KEY: 0})
