"""What a resend has sent is gone with the topic that it was sent to: another call must not go on by
its map, nor be complete."""

import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ClusterUnreachable, InputError
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.resend import parked, steps
from mirrorlake.resend.note import Resend, ResentTopic, read_notes
from mirrorlake.resend.parked import ParkedReplay, ParkedReplayRequest
from mirrorlake.resend.sender import Sending, SendOutcome
from mirrorlake.resend.steps import PlannedResend, Steps
from mirrorlake.run import target_losses
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import FLOW, write_file

PARTS = (
    ResentTopic("t", "u", (StagedRange("east", "t", 0, 0, 0, 9, 10),), picked=((0, 0, 3),)),
    ResentTopic("v", "w", (StagedRange("east", "v", 0, 0, 0, 9, 10),), picked=((0, 0, 3),)),
)


@pytest.fixture
def cluster() -> MemoryCluster:
    """It has one of the target topics; the other one is made."""
    return MemoryCluster("west", {"w": [7]})


@pytest.fixture
def deployment(cluster: MemoryCluster) -> Deployment:
    connections = SimpleNamespace(admin=lambda _: cluster)
    lake = MemoryLake({"mapped_ends": ()})
    return Deployment(lake, cast(Any, connections), cast(Any, MemoryLog()))


@pytest.fixture
def made(deployment: Deployment) -> Steps:
    return Steps(deployment, cast(Any, None), "west")


@pytest.fixture
def begun(made: Steps) -> Resend:
    """A replay as the next call reads it."""
    resend = made.new("replay", "east", {}, PARTS)
    made._begin(PlannedResend(resend, makes=(TopicInfo("u", 1, 1),)))
    log: Any = made.event_log
    rows = [(name, row) for name, row in log.rows if row.outcome == "begun"]
    (noted,) = read_notes(
        {"flow": name, "resource": row.resource, "after": row.after} for name, row in rows
    )
    return noted


def test_what_it_wrote_to_is_noted(begun: Resend, made: Steps, cluster: MemoryCluster) -> None:
    there = cluster.identities(["u", "w"])[0]
    assert {part.target_topic: part.topic_id for part in begun.parts} == {
        name: topic.topic_id for name, topic in there.items()
    }
    made.check_can_go_on(begun)


@pytest.mark.parametrize("topic", ["u", "w"])
@pytest.mark.parametrize("again", [False, True])
def test_it_does_not_go_on_without_it(
    begun: Resend, made: Steps, cluster: MemoryCluster, topic: str, again: bool
) -> None:
    cluster.delete(topic)
    if again:
        cluster.make(topic, 20)
    with pytest.raises(InputError, match=f"topic {topic} of cluster west was deleted.*start-over"):
        made.check_can_go_on(begun)


def test_nor_where_the_target_does_not_say_which_topic_it_has(
    begun: Resend, made: Steps, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer counted as the same one."""
    asked = cluster._identities
    not_w = lambda names: asked([name for name in names if name != "w"])  # noqa: E731
    monkeypatch.setattr(cluster, "_identities", not_w)
    with pytest.raises(ClusterUnreachable, match="does not say whether topic w is the one"):
        made.check_can_go_on(begun)


def test_nor_where_the_target_has_lost_what_it_had_acknowledged(
    begun: Resend,
    made: Steps,
    cluster: MemoryCluster,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(target_losses, "SURE_SECONDS", 0.0)
    lake: Any = deployment.lake
    place = {"target_topic": "w", "partition": 0}
    lake.answers["mapped_ends"] = [place | {"target_position": at} for at in (5, 9, 7)]
    cluster.ends["w"] = [9]
    made.check_can_go_on(begun)
    cluster.ends["w"] = [8]
    with pytest.raises(InputError, match="w-0 .* ends at offset 8, .* records up to 9: .*has lost"):
        made.check_can_go_on(begun)
    cluster.silent = {("w", 0)}
    made.check_can_go_on(begun)


def test_of_one_without_ids_only_that_a_topic_is_gone_is_known(
    made: Steps, cluster: MemoryCluster
) -> None:
    """An earlier version began it, or the target did not say them in time."""
    cluster.make("u", 0)
    cluster.make("w", 0)
    made.check_can_go_on(made.new("replay", "east", {}, PARTS))
    cluster.delete("u")
    with pytest.raises(InputError, match="topic u of cluster west was deleted"):
        made.check_can_go_on(made.new("replay", "east", {}, PARTS))


def test_it_is_not_complete_while_a_leader_does_not_say_what_it_has(
    begun: Resend,
    made: Steps,
    cluster: MemoryCluster,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake: Any = deployment.lake
    lake.answers["mapped_ends"] = [{"target_topic": "w", "partition": 0, "target_position": 7}]
    cluster.silent = {("w", 0)}
    sent = SendOutcome({"u": 10, "w": 10}, complete=True)
    monkeypatch.setattr(steps, "Sender", lambda *_: SimpleNamespace(send=lambda _stop: sent))
    with pytest.raises(ClusterUnreachable, match="w-0 ends.* give the same command again"):
        made.carry_out(PlannedResend(begun, continued=True), Sending(), threading.Event())
    log: Any = made.event_log
    assert not [row for _, row in log.rows if (row.after or "").startswith("records=")]


def test_it_is_not_complete_where_that_happens_meanwhile(
    begun: Resend, made: Steps, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(_stop: threading.Event) -> SendOutcome:
        cluster.make("u", 0)
        return SendOutcome({"u": 10, "w": 10}, complete=True)

    monkeypatch.setattr(steps, "Sender", lambda *_: SimpleNamespace(send=send))
    with pytest.raises(InputError, match="topic u "):
        made.carry_out(PlannedResend(begun, continued=True), Sending(), threading.Event())
    log: Any = made.event_log
    assert not [row for _, row in log.rows if (row.after or "").startswith("records=")]


@pytest.mark.parametrize("lost", [False, True])
def test_what_one_that_is_given_up_has_sent_is_not_sent_again(
    begun: Resend,
    deployment: Deployment,
    cluster: MemoryCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lost: bool,
) -> None:
    """One of its topics was made again; what it sent to the other one is there still, or is lost:
    what is gone would be noted as sent, and never be."""
    monkeypatch.setattr(target_losses, "SURE_SECONDS", 0.0)
    lake: Any = deployment.lake
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    asked = ParkedReplayRequest(flow, start_over=True)
    begun = replace(begun, request=asked.request)
    place = {"partition": 0, "generation": 0}
    sent = place | {"source_first": 3, "stride": 1, "record_count": 1}
    topics = (("t", "u", 0), ("v", "w", 7))
    lake.answers |= {
        "resends": [
            {"flow": begun.name, "resource": row.resource, "after": row.after}
            for row in begun.began()
        ],
        "resent_segments": [sent | {"topic": one, "target_first": at} for one, _, at in topics],
        "mapped_ends": [
            {"target_topic": name, "partition": 0, "target_position": at + 1}
            for _, name, at in topics
        ],
        "parked_waiting": [
            place | {"offset": 3, "topic": one, "target_topic": name, "lives": True}
            for one, name, _ in topics
        ],
    }
    cluster.make("u", 0)
    cluster.ends["w"] = [7 if lost else 8]
    replay = ParkedReplay(deployment, cast(Any, None), asked)
    there = [] if lost else [("v", 0, 0, 3, "w")]
    assert replay._still_there(begun) == there
    planned = replay.plan()
    assert planned.replaces == begun
    cluster.delete("u")
    assert replay._still_there(begun) == there
    assert [part.target_topic for part in planned.resend.parts] == (["u", "w"] if lost else ["u"])


def test_one_that_leaves_nothing_to_be_sent_is_given_up(
    begun: Resend,
    deployment: Deployment,
    cluster: MemoryCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next call would go on with it."""
    lake: Any = deployment.lake
    log: Any = deployment.event_log
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    asked = ParkedReplayRequest(flow, start_over=True)
    begun = replace(begun, request=asked.request)
    lake.answers |= {
        "resends": [
            {"flow": begun.name, "resource": row.resource, "after": row.after}
            for row in begun.began()
        ],
        "resent_segments": (),
        "parked_waiting": (),
    }
    monkeypatch.setattr(parked, "Lease", lambda *_: nullcontext())
    replay = ParkedReplay(deployment, cast(Any, None), asked)
    ((_, outcome),) = replay.run(threading.Event(), None, lambda _: None)
    assert outcome.complete
    assert [row.outcome for name, row in log.rows if name == begun.name][-2:] == ["skipped"] * 2
