"""What was sent again is compared with what was picked before it."""

import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mirrorlake.errors import LakeError
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.definitions import definition, rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.library.resend_answers import sent_answer
from mirrorlake.library.resent import Resent
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.resend import steps
from mirrorlake.resend.note import Resend, ResentTopic
from mirrorlake.resend.sender import Sending, SendOutcome
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import ago, no_session, opened, write_file

#: A hundred records of t between offsets 200 and 499.
PICKED = ResentTopic("t", "u", (StagedRange("east", "t", 3, 0, 200, 499, 100),))


def gone(first: int, last: int, **more: object) -> dict[str, object]:
    row = {"topic": "t", "partition": 3, "generation": 0, "first_offset": first}
    return {**row, "last_offset": last, **more}


def sent(
    monkeypatch: pytest.MonkeyPatch,
    at_target: int,
    *lost: Mapping[str, Any],
    part: ResentTopic = PICKED,
    log: Any = None,
    lake: Lake | None = None,
) -> Resent:
    """The answer to a resend that sent all that it found, given once, before it is over; by a lake
    whose stage has `lost` something since it began."""
    event_log: Any = log or MemoryLog()
    answers: list[Resent] = []

    def told(planned: steps.PlannedResend, outcome: SendOutcome) -> None:
        assert not event_log.rows, "the same call would send all once more"
        answers.append(sent_answer(planned, outcome))

    def send(_stop: threading.Event) -> SendOutcome:
        return SendOutcome({"u": at_target}, complete=True)

    monkeypatch.setattr(steps, "Sender", lambda *_: SimpleNamespace(send=send))
    cluster = MemoryCluster("west", {"u": [0]})
    connections = SimpleNamespace(admin=lambda _: cluster)
    lake = lake or MemoryLake({"not_in_stage": lost, "mapped_ends": ()})
    deployment = Deployment(lake, cast(Any, connections), event_log)
    resend = Resend("replay", "1", "east", "west", target_id="id", request={}, parts=(part,))
    planned = steps.PlannedResend(resend, continued=True)
    made = steps.Steps(deployment, cast(StageFiles, None), "west")
    answer = sent_answer(*made.carry_out(planned, Sending(), threading.Event(), on_sent=told))
    assert answers == [answer]
    assert [change.after for _, change in event_log.rows] == [f"records={at_target}"], "it is over"
    return answer


def test_as_many_as_were_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = sent(monkeypatch, 100, gone(0, 900))
    assert answer.complete and not answer.warnings


@pytest.mark.parametrize("lost", [gone(0, 200), gone(499, 600), gone(300, 300)])
def test_fewer_since_the_stage_has_lost_some(
    monkeypatch: pytest.MonkeyPatch, lost: dict[str, object]
) -> None:
    answer = sent(monkeypatch, 99, lost)
    (warning,) = answer.warnings
    assert not answer.complete and "have been deleted from the stage since" in warning
    assert warning.endswith("the same call sends all again"), "a replay is never gone on with"


@pytest.mark.parametrize(
    "lost",
    [
        (),
        (gone(0, 199), gone(500, 600)),
        (gone(300, 300, partition=2), gone(300, 300, generation=1), gone(300, 300, topic="v")),
    ],
    ids=["nothing", "beside", "elsewhere"],
)
def test_fewer_for_no_reason(
    monkeypatch: pytest.MonkeyPatch, lost: tuple[dict[str, object], ...]
) -> None:
    answer = sent(monkeypatch, 99, *lost)
    (warning,) = answer.warnings
    assert not answer.complete
    assert warning.startswith("t: 100 records were picked when it began and 99 are at u, though")


def test_more_are_missing_than_the_stage_has_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lost twice counts once."""
    lost = gone(290, 319), gone(300, 329)
    assert "have been deleted" in sent(monkeypatch, 60, *lost).warnings[0]
    answer = sent(monkeypatch, 59, *lost)
    assert not answer.complete and "59 are at u, though" in answer.warnings[0]


@pytest.mark.parametrize("since", [True, False])
@pytest.mark.parametrize("table", ["forgotten", "removals"])
def test_only_what_the_stage_lost_since_it_began_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: str, since: bool
) -> None:
    lake, _ = opened(no_session, write_file(tmp_path))
    begun = {"flow": "replay:1:east->west", "at": ago(3_600), "kind": "replay", "outcome": "begun"}
    lake.append("changes", rows_of("changes", [{**begun, "resource": "u"}]))
    at = ago(60 if since else 86_400)
    lost = gone(300, 300, source_cluster="east", below=301, noted_at=at, removed_at=at)
    lost |= {"record_count": 1, "forget_id": "1"}
    names = definition(table).rows.names
    row = {name: value for name, value in lost.items() if name in names}
    lake.append(table, rows_of(table, [row]))
    (warning,) = sent(monkeypatch, 99, lake=lake).warnings
    assert ("have been deleted from the stage since" in warning) is since


def test_more_than_were_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = sent(monkeypatch, 101, gone(300, 300))
    assert not answer.complete and "101 are at u" in answer.warnings[0]


def test_parked_records_stay_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    part = ResentTopic("t", "u", PICKED.ranges, picked=((3, 0, 200), (3, 0, 499)))
    answer = sent(monkeypatch, 99, part=part)
    assert not answer.complete and "they stay parked" in answer.warnings[0]


def test_who_dies_before_it_is_known_what_came_of_it_is_told_by_the_same_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As long as it is not over that goes on with it, and sends nothing."""
    log = MemoryLog()
    with monkeypatch.context() as patch, pytest.raises(LakeError, match="no answer to query"):
        patch.setattr(MemoryLake, "query_rows", unanswered)
        sent(patch, 99, log=log)
    assert log.rows == []
    assert sent(monkeypatch, 100, log=log).complete


def unanswered(_lake: MemoryLake, name: str, *_: object, **__: object) -> tuple[()]:
    """As of a store that is away once all is sent."""
    if name == "not_in_stage":
        raise LakeError("no answer to query")
    return ()
