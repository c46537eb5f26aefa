"""What a restore says: of a pattern without a topic, of transactions that it may have cut in two,
and of all that came of it, before it notes that it has ended. From then on the same call is
refused, since its topics hold records."""

import threading
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake import failpoints
from mirrorlake.errors import InputError
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.library.resends import Resends
from mirrorlake.library.resent import Resent
from mirrorlake.mm2.formats import Heartbeat, encode_heartbeat
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.resend import steps
from mirrorlake.resend.cut import RestoreRequest
from mirrorlake.resend.note import Resend, ResentTopic
from mirrorlake.resend.sender import SendOutcome
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import append, no_session, opened, staged, write_file

PART = ResentTopic("orders", "orders", (StagedRange("east", "orders", 0, 0, 0, 2, 3),), (0,))


class Killed(Exception):
    """Stands for the end of the process."""


def restoring(
    monkeypatch: pytest.MonkeyPatch, folder: Path, cluster: MemoryCluster
) -> tuple[Deployment, Resends]:
    """A lake with three records of `orders`, whose restores send them at once."""
    lake, topology = opened(no_session, write_file(folder))
    append(lake, "records", staged(range(3)))

    def send(_stop: threading.Event) -> SendOutcome:
        return SendOutcome({"orders": 3}, complete=True)

    monkeypatch.setattr(steps, "Sender", lambda *_: SimpleNamespace(send=send))
    connections: Any = SimpleNamespace(
        admin=lambda _: cluster, topology=topology, groups=lambda _: None
    )
    deployment = Deployment(lake, connections, EventLog(lake))
    internals: Any = SimpleNamespace(
        deployment=deployment,
        tables=lake,
        topology=topology,
        connections=connections,
        check_there=lambda: None,
    )
    return deployment, Resends(internals)


def test_who_dies_when_all_is_sent_is_told_by_the_same_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = MemoryCluster("west", {"orders": [3]})
    deployment, lake = restoring(monkeypatch, tmp_path, cluster)
    asked = RestoreRequest("east", "west", topics=("orders",))
    begun = Resend(
        "restore",
        "1",
        source="east",
        target="west",
        target_id=cluster.cluster_id(),
        request=asked.request,
        parts=(PART,),
    )
    deployment.event_log.record(begun.name, begun.began())
    answers: list[Resent] = []

    def restored(answered: Any) -> Resent:
        return lake.restore("east", "west", ["orders"], answered=answered, stop=threading.Event())

    def killed(_answer: Resent) -> None:
        raise Killed

    with pytest.raises(Killed):
        restored(killed)
    answer = restored(answers.append)
    assert answers == [answer] and answer.complete and answer.continued
    assert [(row["topic"], row["end"]) for row in answer.reached] == [("orders", 3)]
    with pytest.raises(InputError, match="holds records"):
        restored(answers.append)


BEATS = encode_heartbeat(Heartbeat("east", "west", 1))


@pytest.mark.parametrize("pattern", ["paymnets", "heartbeats", "__consumer_offsets"])
def test_a_pattern_without_a_topic_is_refused_beside_one_that_has_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pattern: str
) -> None:
    """Whether the lake has no such topic, or one that is not restored."""
    deployment, lake = restoring(monkeypatch, tmp_path, MemoryCluster("west"))
    if pattern != "paymnets":
        beats = dict(zip(("key", "value"), BEATS, strict=True))
        append(deployment.lake, "records", staged(range(2), topic=pattern, **beats))
    with pytest.raises(InputError, match=f"no topic of cluster east that {pattern} matches"):
        lake.restore("east", "west", ["orders", pattern], dry_run=True)
    assert lake.restore("east", "west", ["orders", ".*"], dry_run=True).records == 3


def test_a_transaction_that_may_be_there_in_part_is_named_by_each_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also by the one that goes on with a restore that was killed before it said anything."""
    _, lake = restoring(monkeypatch, tmp_path, MemoryCluster("west"))
    as_of = datetime.now(timezone.utc)

    def restored() -> Resent:
        return lake.restore("east", "west", ["orders"], as_of=as_of, stop=threading.Event())

    def killed(point: str) -> None:
        assert point == "resend-begun"
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(failpoints, "reached", killed)
        restored()
    answer = restored()
    assert answer.complete and answer.continued
    (warning,) = answer.warnings
    assert warning.startswith("orders: a transaction of its cluster may be restored in part")


def test_an_offset_of_a_topic_that_is_not_restored_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was left out without a word, and the rest restored."""
    _, lake = restoring(monkeypatch, tmp_path, MemoryCluster("west", {"orders": [0]}))
    with pytest.raises(InputError, match="bills is not restored"):
        lake.restore("east", "west", ["orders"], below={("orders", 0): 2, ("bills", 0): 9})
