"""Records that were never landed are named, also where retention moves the start of their log while
they are looked up, and where a log went back."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import ClusterUnusable
from mirrorlake.kafka.values import Row
from mirrorlake.offsets.positions import GenerationOffset, TopicAndPartition
from mirrorlake.testing import MemoryCluster
from mirrorlake.verify import coverage
from mirrorlake.verify.not_compared import NOT_STAGED, NotCompared, PartitionFacts

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
        (True, True, True, None),
        (False, False, False, (0, 0)),
    ],
    ids=["there", "its leader is silent", "it may not be described", "only listed", "deleted"],
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


@pytest.mark.parametrize(
    ("end", "noted", "found"),
    [(6, False, (6, 8)), (6, True, (4, 8)), (12, True, (4, 8)), (9, False, None)],
    ids=["nobody saw", "landing did", "it has grown since", "it did not"],
)
@pytest.mark.parametrize("asked_late", [True, False])
def test_a_log_that_went_back_was_not_compared(
    monkeypatch: pytest.MonkeyPatch,
    *,
    end: int,
    noted: bool,
    found: tuple[int, int] | None,
    asked_late: bool,
) -> None:
    """All up to offset 9 was landed. A log that goes on is longer by now than when it was asked."""
    monkeypatch.setattr("mirrorlake.run.target_losses.SURE_SECONDS", 0.0)
    cluster = MemoryCluster("east", {"orders": [end]})
    scope: Any = SimpleNamespace(
        flow=SimpleNamespace(source="east"),
        deployment=SimpleNamespace(connections=SimpleNamespace(admin=lambda _: cluster)),
        source_bounds={KEY: (0, 3 if asked_late else end)},
    )
    facts = PartitionFacts(
        KEY,
        GenerationOffset(0, 9),
        staged=None,
        left_out=lambda _: (),
        landed=GenerationOffset(0, 9),
        source=scope.source_bounds[KEY],
    )
    row = {"kind": "source_rewound", "topic": "orders", "partition": 0, "generation": 0}
    row |= {"open": True, "first_offset": 4, "last_offset": 8}
    told = coverage._went_back(scope, [facts], [row] if noted else [])
    assert [(one.first, one.last) for one in told] == ([] if found is None else [found])


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
