"""Rights that a cluster does not answer about are not taken for given."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection

from mirrorlake.checks.access import access_problems, own_topic_problems
from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.library.doctor import right_checks
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, write_file

_ALL = [SimpleNamespace(name=name) for name in ("DESCRIBE", "READ", "WRITE")]


class Asked(MemoryCluster):
    """A cluster that allows all, but answers about some topics with an error."""

    odd: Mapping[str, int] = {}

    @property
    def client(self) -> Any:
        return self

    def describe_topics(
        self, topics: TopicCollection, **_options: object
    ) -> dict[str, "Future[SimpleNamespace]"]:
        return {name: self._answer(name) for name in topics.topic_names}

    def create_topics(  # type: ignore[override]
        self, topics: Iterable[Any], **_options: object
    ) -> dict[str, "Future[SimpleNamespace]"]:
        return {one.topic: self._answer(one.topic) for one in topics}

    def _answer(self, name: str) -> "Future[SimpleNamespace]":
        answer: Future[SimpleNamespace] = Future()
        if name in self.odd:
            answer.set_exception(KafkaException(KafkaError(self.odd[name], "it is odd")))
        else:
            answer.set_result(SimpleNamespace(topic_id="x", authorized_operations=_ALL))
        return answer


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"orders": KafkaError.KAFKA_STORAGE_ERROR}, "topic orders of cluster east"),
        ({"east.orders": KafkaError.KAFKA_STORAGE_ERROR}, "topic east.orders of cluster west"),
        ({"east.fresh": KafkaError._TIMED_OUT}, "topic east.fresh of cluster west"),
        ({"heartbeats": KafkaError._TIMED_OUT}, "topic heartbeats of cluster"),
        ({}, None),
    ],
)
def test_doctor_says_that_they_were_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: dict[str, int], said: str | None
) -> None:
    monkeypatch.setattr(Asked, "odd", odd)
    topology = load_topology(write_file(tmp_path))
    east = Asked("east", {"orders": [9], "fresh": [9]})
    connections = Connections(topology, {"east": east, "west": Asked("west", {"east.orders": [9]})})
    flow = topology.flow(FLOW)
    found = access_problems(connections, [flow]) + own_topic_problems(connections, flow)
    assert {problem.severity for problem in found} <= {"note"}
    checks = list(right_checks([flow], [flow], found))
    good = [check.sentence for check in checks if check.state == "good"]
    if said is None:
        assert found == [] and good == ["the rights on its topics are there"]
    else:
        assert good == []
        assert all(f"the rights on {said}" in problem.sentence for problem in found)
        assert all("were not checked: it is odd" in problem.sentence for problem in found)
