"""What replays had sent to a flow's own target topic, and the target has lost: parked records wait
once more, and nothing says that they are there."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from mirrorlake.lake.changes import Change
from mirrorlake.lake.decisions import Decided, Lost
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame
from mirrorlake.offsets.progress import Floor
from mirrorlake.produce.spec import FlowSpec
from mirrorlake.run import target_losses
from mirrorlake.run.stopped_partitions import StoppedPartitions
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, run_row, write_file

TOPIC, MIRROR, REPLAY = "orders", "east.orders", "replay:20261101-1:east->west"
#: What had sent the same records to the mirror's generation before this one.
BEFORE = "replay:20261031-1:east->west"
#: Source offsets that the flow has brought, but for two, which it parked; they were replayed to the
#: two target offsets behind those.
PARKED, MAPPED = (2, 5), 8
SPEC = FlowSpec(
    FLOW,
    source_cluster="east",
    name_at_target="m",
    remote_topic=lambda topic: f"east.{topic}",
    client={},
    producer={},
    produce_tasks=1,
    transactional=True,
)
NONE_DECIDED = Decided()


def replayed(flow: str, offset: int, target: int, seconds_ago: float) -> dict[str, Any]:
    segment = {"source_first": offset, "stride": 1, "target_first": target, "record_count": 1}
    at_target = {"target_first": target, "target_last": target, "segments": [segment]}
    return run_row(offset, offset, seconds_ago) | at_target | {"flow": flow}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two records were parked and replayed; the same two lay far behind in the mirror's generation
    before this one."""
    lake = opened(no_session, write_file(tmp_path))[0]
    mirror = {"flow": FLOW, "topic": TOPIC, "target_topic": MIRROR, "begins": "stage"}
    generations = [
        mirror | {"target_generation": number, "topic_id": str(number), "started_at": ago(at)}
        for number, at in ((0, 9_000), (1, 900))
    ]
    lake.append("target_generations", rows_of("target_generations", generations))
    place = {"flow": FLOW, "topic": TOPIC, "partition": 0, "generation": 0, "target_topic": MIRROR}
    rows = [
        place
        | {"offset": offset, "target_generation": number, "reason": "too large"}
        | {"parked_at": ago(at), "replayed_at": ago(at - 100)}
        for offset in PARKED
        for number, at in ((0, 8_000), (1, 800))
    ]
    lake.append("parked", rows_of("parked", rows))
    here = [replayed(REPLAY, offset, MAPPED + n, 700) for n, offset in enumerate(PARKED)]
    before = [replayed(BEFORE, offset, 90 + n, 7_900) for n, offset in enumerate(PARKED)]
    append(lake, "offset_map", [run_row(0, 9) | {"target_generation": 1}, *here, *before])
    return lake


def look(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, end: int, decided: Decided = NONE_DECIDED
) -> StoppedPartitions:
    """The flow begins while the target's log has an end."""
    monkeypatch.setattr(target_losses, "SURE_SECONDS", 0.0)
    targets: Any = SimpleNamespace(
        remote_topic=lambda topic: f"east.{topic}", check=lambda: None, closed=dict
    )
    stopped = StoppedPartitions(
        FLOW,
        lake,
        targets,
        incidents=Incidents(lake),
        begin_anew=lambda: None,
        limits=lambda _names: {},
    )
    producer: Any = SimpleNamespace(
        floors=lambda: {(TOPIC, 0): Floor(10, MAPPED, target_generation=1)},
        spec=SPEC,
        set_back=lambda _places: pytest.fail("what the flow itself has written is there"),
    )
    assert not stopped.stop_where_lost(producer, lambda _places: {(MIRROR, 0): end}, decided)
    return stopped


def waiting(lake: Lake) -> list[int]:
    return [row["offset"] for row in lake.ask("parked_waiting", flow=FLOW)]


def test_what_was_deleted_from_the_stage_waits_for_nothing(lake: Lake) -> None:
    """A replay would find nothing to send of it, and would never be complete."""
    place = {"topic": TOPIC, "partition": 0, "generation": 0}
    parked = {"flow": FLOW, "target_topic": MIRROR, "target_generation": 1, "parked_at": ago(60)}
    lake.append("parked", rows_of("parked", [place | parked | {"offset": at} for at in (7, 8)]))
    assert waiting(lake) == [7, 8]
    forgotten = {"source_cluster": "east", "first_offset": 7, "last_offset": 7, "record_count": 1}
    noted = {"forget_id": "f", "noted_at": ago(30)}
    lake.append("forgotten", rows_of("forgotten", [place | forgotten | noted]))
    assert waiting(lake) == [8]
    assert [row["offset"] for row in lake.ask_table("unsent_parked")] == [8]


@pytest.mark.parametrize("kept", [0, 1])
def test_they_wait_again(lake: Lake, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """The flow's own records are all there, so its map shows nothing."""
    stopped = look(lake, monkeypatch, MAPPED + kept)
    assert "east.orders-0 has lost records" in str(stopped.error)
    (told,) = lake.ask_table("incidents")
    assert (told["kind"], told["target_offset"]) == ("target_lost", MAPPED + kept)
    assert waiting(lake) == list(PARKED[kept:])
    sent = lake.ask("resent_segments", flow=REPLAY)
    assert [row["source_first"] for row in sent] == list(PARKED[:kept])
    older = [row for row in lake.ask_table("parked") if row["target_generation"] == 0]
    assert all(row["replayed_at"] is not None for row in older), "nor is anything said of those"


def test_what_is_sent_while_it_waits_for_a_decision_stays_sent(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(lake, monkeypatch, MAPPED)
    again = [replayed("replay:2:east->west", at, MAPPED + n, 0) for n, at in enumerate(PARKED)]
    append(lake, "offset_map", again)
    sent = [(TOPIC, 0, 0, offset, MIRROR) for offset in PARKED]
    layout = "topic STRING, partition INT, generation INT, offset BIGINT, target_topic STRING"
    lake.change("note_parked_sent", {"sent": Frame(layout, sent)}, flow=FLOW)
    decided = replace(NONE_DECIDED, lost={(TOPIC, 0): Lost(1, MAPPED)})
    look(lake, monkeypatch, MAPPED + len(PARKED), decided)
    assert waiting(lake) == []


def test_nothing_is_taken_back_of_what_is_there(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an older generation of the mirror had behind its end says nothing of this one."""
    stopped = look(lake, monkeypatch, MAPPED + len(PARKED))
    assert stopped.error is None and waiting(lake) == []


def was_ahead(lake: Lake, table: str, column: str, where: str | None = None) -> None:
    """What a table has was noted by a clock that was three hours ahead."""
    updates = {column: f"{column} + INTERVAL '3 hours'"}
    DeltaTable(f"{lake.directory}/{table}").update(updates=updates, predicate=where)


@pytest.mark.parametrize(
    ("table", "column", "where"),
    [
        ("target_generations", "started_at", "target_generation = 1"),
        ("parked", "parked_at", "target_generation = 1"),
        ("offset_map", "produced_at", f"flow = '{BEFORE}'"),
    ],
    ids=["mirror", "parked", "older replay"],
)
def test_whose_clock_was_ahead_says_nothing_of_where_a_replay_wrote(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, table: str, column: str, where: str
) -> None:
    """The topic's id, which was noted when the replay began, does."""
    for number, replay in enumerate((BEFORE, REPLAY)):
        note = Change("replay", MIRROR, after=f'{{"topic_id": "{number}"}}', outcome="begun")
        EventLog(lake).record(replay, [note])
    was_ahead(lake, table, column, where)
    assert look(lake, monkeypatch, MAPPED + len(PARKED)).error is None, "all is there"
    assert "east.orders-0 has lost records" in str(look(lake, monkeypatch, MAPPED).error)
    assert waiting(lake) == list(PARKED)
