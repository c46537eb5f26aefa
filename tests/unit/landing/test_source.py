"""The topics of a source as landing sees them. No Kafka."""

from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.kafka.access import TopicAccess
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.landing import source
from mirrorlake.landing.source import ClusterSource
from mirrorlake.landing.source_comparison import SourceTopic

DESCRIBED = {
    "orders": TopicAccess("id of orders", frozenset({"READ"})),
    "secret": TopicAccess(None, frozenset()),
    "gone": TopicAccess(None, None),
    "broken": TopicAccess(None, None, "Disk error"),
}


def test_a_topic_is_shown_that_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is gone by now, or may not be described, is not shown: that is known otherwise."""
    infos = {name: TopicInfo(name, 2, 1) for name in DESCRIBED}
    admin = SimpleNamespace(topics=lambda: infos, client=None)
    connections: Any = SimpleNamespace(admin=lambda _alias: admin)
    selection: Any = SimpleNamespace(lands=lambda _topic: True)
    monkeypatch.setattr(source, "described", lambda _client, topics: DESCRIBED)
    topics = ClusterSource("east", lambda: connections, lambda: [selection]).topics()
    assert topics == {"orders": SourceTopic("id of orders", 2), "broken": SourceTopic("", 0)}
    assert topics["broken"].undescribed == "Disk error"
