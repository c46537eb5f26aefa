"""`replay --parked` does not end as if nothing were left while something stays parked."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake import failpoints
from mirrorlake.errors import InputError, PositionLost, TargetRefused
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.library.resends import Resends
from mirrorlake.library.resent import Resent
from mirrorlake.resend import parked, steps
from mirrorlake.resend.note import Resend
from mirrorlake.resend.sender import Sending, SendOutcome
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    parked_row,
    record_row,
    staged,
    write_file,
)


class Scene:
    """A lake with three records of each of two topics, of which some are parked. What a replay
    sends is at once at the target, and in its map."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake, topology = opened(no_session, write_file(folder))
        for topic in ("orders", "payments"):
            append(self.lake, "records", staged(range(3), topic=topic))
        ends = {name: [99] for name in ("east.orders", "east.payments", "old.orders")}
        self.cluster = cluster = MemoryCluster("west", ends)
        connections: Any = SimpleNamespace(admin=lambda _: cluster, topology=topology)
        self.deployment = Deployment(self.lake, connections, EventLog(self.lake))
        internals: Any = SimpleNamespace(
            deployment=self.deployment,
            tables=self.lake,
            topology=topology,
            connections=connections,
            check_there=lambda: None,
        )
        self.resends = Resends(internals)
        monkeypatch.setattr(parked.ParkedReplay, "_sending", lambda *_: Sending())
        monkeypatch.setattr(steps, "Sender", self._sender)

    def _sender(self, _deployment: object, _stage: object, resend: Resend, _: object) -> Any:
        def send(_stop: threading.Event) -> SendOutcome:
            for part in resend.parts:
                for at, (partition, generation, offset) in enumerate(part.picked):
                    place = (part.topic, partition, generation)
                    row = record_row(resend.name, place, offset, part.target_topic, 9 + at)
                    append(self.lake, "offset_map", [row])
            return SendOutcome({part.target_topic: part.records for part in resend.parts}, True)

        return SimpleNamespace(send=send)

    def park(self, topic: str, *offsets: int, name: str | None = None) -> None:
        of_topic = {"topic": topic, "target_topic": name or f"east.{topic}"}
        rows = [{**parked_row(offset, ago(60)), **of_topic} for offset in offsets]
        self.lake.append("parked", rows_of("parked", rows))

    def lose(self, topic: str, name: str | None = None, **decided: object) -> None:
        """Its target topic, of this name, is gone; perhaps that is decided."""
        target = {"flow": FLOW, "topic": topic, "target_topic": name or f"east.{topic}"}
        began = {"topic_id": "id", "begins": "stage", "began": [0], "started_at": ago(90)}
        generations = [{**target, **began, "target_generation": 0}]
        self.lake.append("target_generations", rows_of("target_generations", generations))
        found = {"kind": "target_recreated", "at": ago(30), "target_generation": 0, **decided}
        self.lake.append("incidents", rows_of("incidents", [{**target, **found}]))

    def replay(
        self, topic: str | None = None, dry_run: bool = False, start_over: bool = False
    ) -> Resent:
        return self.resends.replay_parked(
            FLOW, topic, start_over=start_over, dry_run=dry_run, stop=threading.Event()
        )

    @property
    def waiting(self) -> list[tuple[str, int]]:
        rows = self.lake.now.table_rows("unsent_parked")
        return sorted((row["topic"], row["offset"]) for row in rows)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def test_what_waits_for_a_decision_is_named(scene: Scene) -> None:
    """The others are sent."""
    scene.park("orders", 0, 1)
    scene.park("payments", 2)
    scene.lose("orders")
    planned = scene.replay(dry_run=True)
    assert planned.records == 1 and any(
        "orders: 2 records stay" in said for said in planned.warnings
    )
    sent = scene.replay()
    assert (sent.complete, sent.records, scene.waiting) == (
        False,
        1,
        [("orders", 0), ("orders", 1)],
    )
    again = scene.replay("orders")
    (warning,) = again.warnings
    assert not again.complete and not again.topics
    assert warning.startswith(
        "orders: 2 records stay parked, since topic east.orders of cluster west"
    )
    assert warning.endswith("until that is decided (mirrorlake resolve), and then goes on")
    assert scene.replay("payments").complete, "it is not asked for the others"


def test_what_a_decision_has_stopped_waits_for_none(scene: Scene) -> None:
    """It is named, counted by `status`, and kept; that there is nothing to decide was not said."""
    scene.park("orders", 0, 1)
    scene.lose("orders", resolution="stop", resolved_at=ago(20))
    answer = scene.replay()
    (warning,) = answer.warnings
    assert not answer.complete and warning.startswith("orders: 2 records stay parked, since topic")
    assert warning.endswith("its mirroring was stopped by a decision: nothing sends them")
    assert scene.waiting == [("orders", 0), ("orders", 1)]


def test_what_was_decided_about_another_mirror_is_not_decided_of_this_one(scene: Scene) -> None:
    """The flow had another policy then, and the first generation of either is number 0."""
    scene.park("orders", 0, 1)
    scene.lose("orders", "copy.orders", resolution="stop", resolved_at=ago(20))
    scene.lose("orders")
    (warning,) = scene.replay().warnings
    assert warning.endswith("until that is decided (mirrorlake resolve), and then goes on")


def test_what_topics_of_two_policies_refused_goes_to_each_by_a_call_of_its_own(
    scene: Scene,
) -> None:
    """All of it went to one of them, and was noted as sent to both."""
    scene.park("orders", 0, name="old.orders")
    scene.park("orders", 1, 2)
    assert scene.replay(dry_run=True).records == 2
    sent = scene.replay()
    assert [(one["target_topic"], one["records"]) for one in sent.topics] == [("east.orders", 2)]
    assert not sent.complete and any("that topic old.orders" in said for said in sent.warnings)
    assert scene.waiting == [("orders", 0)]
    sent = scene.replay()
    assert [(one["target_topic"], one["records"]) for one in sent.topics] == [("old.orders", 1)]
    assert sent.complete and scene.waiting == []


def test_what_the_topic_of_an_earlier_policy_refused_waits_where_that_one_is_gone(
    scene: Scene,
) -> None:
    """It held all others up: the flow was to make it, which it does not do any more."""
    scene.park("orders", 0, name="gone.orders")
    scene.park("orders", 1)
    sent = scene.replay()
    assert (sent.complete, sent.records, scene.waiting) == (False, 1, [("orders", 0)])
    (warning,) = scene.replay().warnings
    assert warning.startswith("orders: 1 records stay parked that topic gone.orders")


def test_a_topic_that_the_lake_does_not_have_is_refused(scene: Scene) -> None:
    scene.park("payments", 2)
    with pytest.raises(InputError, match="no records of a topic paymnets"):
        scene.replay("paymnets")
    answer = scene.replay("orders")
    assert answer.complete and answer.warnings == ["nothing is parked"]


@pytest.mark.parametrize("topic", ["orders", None])
def test_one_that_was_killed_goes_on_and_what_it_did_not_pick_is_sent_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, topic: str | None
) -> None:
    """Whether it was parked since, or is of another topic than what was asked for then."""
    scene.park("payments", 0)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(failpoints, "reached", interrupted)
        scene.replay("payments")
    scene.park("orders", 1, 2)
    planned = scene.replay(topic, dry_run=True)
    assert (planned.records, planned.continued) == (3, True)
    sent = scene.replay(topic)
    assert (sent.complete, sent.continued, sent.records) == (True, True, 3)
    assert scene.waiting == []
    assert scene.replay(topic).warnings == ["nothing is parked"]


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (
            [PositionLost("the target does not know any more", topic="payments")],
            "does not know any more",
        ),
        ([], "the same call goes on"),
    ],
    ids=["the target forgot its position", "an interrupt"],
)
def test_what_one_has_sent_is_all_in_the_map_before_another_starts_over(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, refused: list[TargetRefused], said: str
) -> None:
    """Else what it had sent would be sent twice."""
    scene.park("payments", 0, 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(failpoints, "reached", interrupted)
        scene.replay()
    with monkeypatch.context() as patch:
        mapped = SendOutcome(refused=refused)
        patch.setattr(parked, "Sender", lambda *_: SimpleNamespace(send=lambda _: mapped))
        answer = scene.replay(start_over=True)
    assert not answer.complete and any(said in line for line in answer.warnings)
    assert scene.waiting == [("payments", 0), ("payments", 1)]
    assert scene.replay(dry_run=True).continued, "the earlier one is not given up"


def interrupted(point: str) -> None:
    """As a process that is killed before it sends anything."""
    assert point == "resend-begun"
    raise KeyboardInterrupt
