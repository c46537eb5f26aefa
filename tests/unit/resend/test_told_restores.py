"""A restore says what came of it before it notes that it has ended: from then on the same call is
refused, since its topics hold records."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import InputError
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.library.resends import Resends
from mirrorlake.library.resent import Resent
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


def test_who_dies_when_all_is_sent_is_told_by_the_same_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lake, topology = opened(no_session, write_file(tmp_path))
    append(lake, "records", staged(range(3)))
    cluster = MemoryCluster("west", {"orders": [3]})

    def send(_stop: threading.Event) -> SendOutcome:
        return SendOutcome({"orders": 3}, complete=True)

    monkeypatch.setattr(steps, "Sender", lambda *_: SimpleNamespace(send=send))
    connections: Any = SimpleNamespace(admin=lambda _: cluster, topology=topology, groups=None)
    deployment = Deployment(lake, connections, EventLog(lake))
    internals: Any = SimpleNamespace(
        deployment=deployment, tables=lake, topology=topology, connections=connections
    )
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
        return Resends(internals).restore(
            "east", "west", ["orders"], answered=answered, stop=threading.Event()
        )

    def killed(_answer: Resent) -> None:
        raise Killed

    with pytest.raises(Killed):
        restored(killed)
    answer = restored(answers.append)
    assert answers == [answer] and answer.complete and answer.continued
    assert [(row["topic"], row["end"]) for row in answer.reached] == [("orders", 3)]
    with pytest.raises(InputError, match="holds records"):
        restored(answers.append)
