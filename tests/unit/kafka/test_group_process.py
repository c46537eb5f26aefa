"""The process that asks about groups: what its death means, and that it ends with its owner."""

import gc
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.groups import GroupAdmin
from mirrorlake.kafka.groups_worker import TOO_LATE
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.offsets.positions import Committed

POPEN = subprocess.Popen


def group_admin(**client: str) -> GroupAdmin:
    admin = SimpleNamespace(alias="east", address="127.0.0.1:1")
    return GroupAdmin(admin, LiveSettings(lambda: {"bootstrap.servers": "127.0.0.1:1", **client}))  # type: ignore[arg-type]


def test_nothing_is_started_for_no_groups() -> None:
    groups = group_admin()
    assert groups.positions([]).positions == {}
    assert groups.move({}) == {}
    assert groups._process is None


def test_a_death_costs_one_call(capfd: pytest.CaptureFixture[str]) -> None:
    groups = group_admin(**{"no.such.setting": "dies of it"})
    for _ in range(2):  # the second call starts another process
        with pytest.raises(
            ClusterUnreachable, match="cluster east did not answer about consumer groups"
        ):
            groups.positions(["app"])
        assert groups._process is None
    assert "dies of it" not in capfd.readouterr().err


def test_the_process_ends_with_its_owner() -> None:
    groups = group_admin()
    process = groups._running()
    assert process.poll() is None
    del groups
    gc.collect()
    assert process.poll() is not None


@pytest.mark.parametrize("needed", [False, True])
def test_a_process_that_only_rights_have_needed_is_ended(
    monkeypatch: pytest.MonkeyPatch, needed: bool
) -> None:
    """A cluster whose groups nothing asks about again has none: each takes 12 MiB."""
    groups = group_admin()
    process = groups._running() if needed else None

    def ask(*_: object) -> tuple[dict[str, Any], dict[str, str]]:
        groups._running()
        return {"app": {"operations": ["READ"]}}, {}

    monkeypatch.setattr(groups, "_ask", ask)
    assert groups.rights("app") == {"READ"}
    assert groups._process is process


def test_what_was_told_before_a_death_is_kept_and_the_rest_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process that answers two groups and dies, and one more that answers one and dies."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, os, sys\nsys.stdin.readline()\ngroups = "
        "list(json.loads(sys.stdin.readline())['groups'])\nfor group in groups[:2] if len(groups) "
        "> 3 else groups[:1]:\n    print(json.dumps({'group': group, 'positions': [['orders', 0, "
        "len(groups), '']]}), flush=True)\nos.abort()\n"
    )
    groups = group_admin()
    started: list[list[str]] = []

    def popen(command: list[str], **settings: Any) -> "subprocess.Popen[str]":
        started.append(command)
        return POPEN([sys.executable, str(script)], **settings)

    monkeypatch.setattr(subprocess, "Popen", popen)
    told = groups.positions(["a", "b", "c", "d", "e"])
    assert len(started) == 2
    assert told.positions.keys() == {"a", "b", "c"} and told.errors.keys() == {"d", "e"}
    assert told.positions["c"] == {("orders", 0): Committed(3)}


def test_groups_whose_coordinator_did_not_answer_come_last_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = group_admin()
    order: list[list[str]] = []

    def exchange(document: dict[str, Any], answers: dict[str, Any], _seconds: float) -> None:
        order.append(list(document["groups"]))
        for group in document["groups"]:
            answers[group] = {"error": "timed out"} if group == "b" else {"positions": []}
        if len(order) == 1:
            answers["d"] = {"error": TOO_LATE}

    monkeypatch.setattr(groups, "_exchange", exchange)
    assert groups.positions("abcd").errors == {"b": "timed out", "d": TOO_LATE}
    groups.positions("abcd")
    assert order == [["a", "b", "c", "d"], ["a", "c", "d", "b"]]


class Listed:
    """A cluster that lists groups, of which one broker did not answer and one partition of
    positions has no leader."""

    alias, address = "east", "127.0.0.1:1"

    def __init__(self, shows: bool = True) -> None:
        self.client, self.shows = self, shows

    def topics(self) -> dict[str, TopicInfo]:
        homes = TopicInfo("__consumer_offsets", 5, 1, leaderless=frozenset({3}))
        return {homes.name: homes} if self.shows else {}

    def list_consumer_groups(self, request_timeout: float) -> SimpleNamespace:
        group = SimpleNamespace(group_id="app", state=SimpleNamespace(name="EMPTY"))
        # what confluent-kafka gives, where it says that it gives exceptions
        bare = KafkaError(KafkaError._TIMED_OUT)
        return SimpleNamespace(
            result=lambda: SimpleNamespace(valid=[group], errors=[bare, KafkaException(bare)])
        )

    def list_groups(self, timeout: float) -> list[SimpleNamespace]:
        found = {"app": "Empty", "sharing": "Dead", "connect-sink": "Stable"}
        return [SimpleNamespace(id=name, state=state) for name, state in found.items()]


def test_a_listing_says_why_there_may_be_more() -> None:
    groups = GroupAdmin(Listed(), LiveSettings(lambda: {"bootstrap.servers": "127.0.0.1:1"}))  # type: ignore[arg-type]
    listing = groups.listing()
    assert listing.states == {"app": "EMPTY"}
    assert (
        len(listing.errors) == 3
        and "1 partitions of __consumer_offsets have no leader, such as 3" in listing.errors
    )
    assert groups.other_kinds(listing) == {"sharing"} and listing.shows_homes
    hidden = GroupAdmin(Listed(False), LiveSettings(lambda: {"bootstrap.servers": "127.0.0.1:1"}))  # type: ignore[arg-type]
    assert len(hidden.listing().errors) == 2 and not hidden.listing().shows_homes


@pytest.mark.parametrize(
    ("code", "hides"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, True),
        (KafkaError._TRANSPORT, True),
    ],
)
def test_whether_a_cluster_never_had_a_group_or_does_not_show_it(code: int, hides: bool) -> None:
    """Its list of topics lacks that of positions in either case."""

    error = KafkaException(KafkaError(code))

    def described(topics: TopicCollection, **_: object) -> dict[str, "Future[None]"]:
        futures = {name: Future[None]() for name in topics.topic_names}
        for future in futures.values():
            future.set_exception(error)
        return futures

    def learn_leaders(_seconds: float) -> None:
        raise error

    client = SimpleNamespace(describe_topics=described, learn_leaders=learn_leaders)
    cluster: Any = SimpleNamespace(alias="east", address="127.0.0.1:1", client=client)
    groups = GroupAdmin(cluster, LiveSettings(lambda: {"bootstrap.servers": "127.0.0.1:1"}))
    assert groups.hides_homes() is hides
