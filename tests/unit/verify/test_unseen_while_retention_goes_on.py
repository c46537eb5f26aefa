"""Records that were never landed are named, also where retention moves the start of their log while
they are looked up."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

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
