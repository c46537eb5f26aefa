"""What a restore was asked for beside records and does not do is no success."""

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mirrorlake.kafka.admin_acls import NoAcls
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.lake.changes import HISTORY_DELETED, WHOLE_LAKE, Change, MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.library.resend_answers import sent_answer, with_extras
from mirrorlake.library.resent import Resent
from mirrorlake.naming.naming import Naming
from mirrorlake.offsets.generations import Begun
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.resend import acls, steps
from mirrorlake.resend import extras as extras_of_restores
from mirrorlake.resend.extras import ACLS, CONFIGS, GROUPS, Extras, ExtrasDone
from mirrorlake.resend.note import Resend, ResentTopic
from mirrorlake.resend.sender import Sending, SendOutcome
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.acls import acl

PART = ResentTopic("t", "t", (StagedRange("east", "t", 0, 0, 0, 9, 10),), (0,))
RESEND = Resend("restore", "1", "east", "west", target_id="id", request={}, parts=(PART,))
BEGUN = (Begun("t", 0), Begun("t", 1))
STATE = {"topic": "t", "partitions": 1, "factor": 1, "configs": {}, "topic_id": "id"}
STATED = {**STATE, "noted_later": False, "acls": [vars(acl("t", "WRITE"))]}
LATER = {"group_id": "g", "topic": "t", "partition": 0, "metadata": ""}
LATER |= {"source_position": 5, "generation": 1}
DESCRIBED = Described({"t": {}})
FIRST_AT = datetime(2026, 3, 1, tzinfo=timezone.utc)


def restored(
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    states: list[dict[str, Any]],
    target: frozenset[Any] | NoAcls = frozenset(),
    more: Mapping[str, Any] | None = None,
    noted: Sequence[tuple[str, Change]] = (),
    described: Described = DESCRIBED,
) -> tuple[Resent, bool]:
    """The answer of a restore that sent all of its records, and whether it is over: another call
    has nothing left to do."""
    monkeypatch.setattr(acls, "describe_topic_acls", lambda _admin: target)
    monkeypatch.setattr(extras_of_restores, "describe_topic_configs", lambda *_: described)
    monkeypatch.setattr(extras_of_restores, "alter_topic_configs", lambda *_: {})
    monkeypatch.setattr(acls, "create_acls", lambda _admin, made: dict.fromkeys(made))
    cluster, log = MemoryCluster("west", {"t": [10]}), cast(Any, MemoryLog([*noted]))
    rows: dict[str, Any] = {"states_as_of": states, "group_positions_as_of": [LATER]}
    rows |= dict.fromkeys(("mapped_ends", "translate_forward", "not_in_stage"), ())
    lake = MemoryLake({**rows, "group_positions_since": (), **(more or {})})
    connections: Any = SimpleNamespace(admin=lambda _: cluster, groups=lambda _: None)
    deployment = Deployment(lake, connections, log)
    extras = Extras(deployment, Naming("identity", "east"), "west", what=(what,), until_ms=0)

    def send(_stop: threading.Event) -> SendOutcome:
        return SendOutcome({"t": 10}, complete=True)

    def rest(resend: Resend) -> ExtrasDone:
        return extras.carry_out(resend, BEGUN, {})

    monkeypatch.setattr(steps, "Sender", lambda *_: SimpleNamespace(send=send))
    made = steps.Steps(deployment, cast(Any, None), "west")
    planned = steps.PlannedResend(RESEND, continued=True)
    planned, outcome = made.carry_out(planned, Sending(), threading.Event(), rest)
    answer = with_extras(sent_answer(planned, outcome), outcome.extras, ())
    return answer, any(
        change.outcome == "done" for _, change in log.rows if change.kind == "restore"
    )


def test_rights_that_the_target_does_not_take_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call makes them, once it does."""
    silent = NoAcls(False, "DESCRIBE on the cluster is not allowed")
    answer, over = restored(monkeypatch, ACLS, [STATED], silent)
    assert not answer.complete and not over and "takes no ACLs" in answer.warnings[-1]
    answer, over = restored(monkeypatch, ACLS, [STATED])
    assert answer.complete and len(answer.acls) == 1


def test_configs_that_the_target_does_not_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """They counted as those that a restore makes a topic with, so nothing was left to be set."""
    kept = [{**STATED, "configs": {"retention.ms": "-1", "cleanup.policy": "delete"}}]
    silent = Described(refused={"t": "Topic authorization failed"})
    answer, over = restored(monkeypatch, CONFIGS, kept, described=silent)
    assert not answer.complete and not over and not answer.configs
    assert "grant DESCRIBE_CONFIGS" in answer.warnings[-1]
    answer, over = restored(monkeypatch, CONFIGS, kept)
    assert answer.complete and over and len(answer.configs) == 2


@pytest.mark.parametrize(
    ("what", "states", "warning"),
    [
        (ACLS, [{**STATED, "acls": None}], "east did not report them"),
        (CONFIGS, [], "the lake does not know them"),
        (GROUPS, [], "they are of what is there now"),
    ],
)
def test_what_no_call_restores(
    monkeypatch: pytest.MonkeyPatch, what: str, states: list[dict[str, Any]], warning: str
) -> None:
    """It is over, and not all of it is there."""
    answer, over = restored(monkeypatch, what, states)
    assert over and not answer.complete and warning in answer.warnings[-1]


@pytest.mark.parametrize(
    ("known", "deleted_days", "told"),
    [
        (True, None, False),  # it came later than the time
        (True, -1, False),
        (True, 1, True),  # what `maintain` has deleted may have been of that time
        (False, None, True),  # no flow had read of any group
    ],
)
def test_where_a_group_stood_before_all_that_the_lake_knows_of_it(
    monkeypatch: pytest.MonkeyPatch, known: bool, deleted_days: int | None, told: bool
) -> None:
    """It was left out without a word, and the command said that nothing is left."""
    other = {**LATER, "group_id": "h", "topic": "not restored"}
    more = {
        "group_positions_as_of": [other] if known else (),
        "group_positions_since": [
            {"group_id": "g", "topic": "t", "partition": 0, "first_at": FIRST_AT},
            {"group_id": "g", "topic": "not restored", "partition": 0, "first_at": FIRST_AT},
        ],
    }
    noted = []
    if deleted_days is not None:
        at = (FIRST_AT + timedelta(days=deleted_days)).isoformat()
        noted = [(WHOLE_LAKE, Change(HISTORY_DELETED, "checkpoints", after=at))]
    answer, over = restored(monkeypatch, GROUPS, [], more=more, noted=noted)
    assert over and answer.complete is not told
    assert [line for line in answer.warnings if "group g in t-0 are not restored" in line] == (
        answer.warnings[-1:] if told else []
    )
