"""`forget` in a folder, where all is mapped: neither a session nor a cluster takes part."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.errors import InputError
from mirrorlake.forget import forget as forgetting
from mirrorlake.forget.flows import SourceFlows
from mirrorlake.forget.still_needed import FlowPositions
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.changes import Change
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.forgotten import finish_calls
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.maintain import maintain
from mirrorlake.lake.targets import note_targets
from mirrorlake.library.internals import Internals
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.offsets.positions import GenerationOffset
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import ago, append, no_session, opened, run_row, staged, write_file

BRACES = '{"who": "{eve@people}"}'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake of 60 records in three files, every third of which is Eve's; there is no session."""
    file = write_file(tmp_path)
    lake = opened(no_session, file)[0]
    for first in (0, 20, 40):
        rows = staged(range(first, first + 20))
        for row in rows:
            row["value"] = (BRACES if row["offset"] % 3 == 0 else "other").encode()
        append(lake, "records", rows)
    append(lake, "offset_map", [run_row(0, 59)])
    monkeypatch.setattr(Internals, "spark", property(lambda _self: no_session()))
    return file


def offsets(file: Path) -> list[int]:
    rows = mirrorlake.open(file).rows("SELECT offset FROM records ORDER BY offset")
    return [row["offset"] for row in rows]


def test_records_go_and_their_offsets_are_noted(file: Path) -> None:
    lake, where = mirrorlake.open(file), f"CAST(value AS STRING) = '{BRACES}'"
    looked = lake.forget("orders", where, dry_run=True)
    assert (looked.records, looked.files, looked.waiting) == (20, 3, 0)
    assert len(offsets(file)) == 60
    done = lake.forget("orders", where)
    assert (done.records, done.files, done.waits) == (20, 3, [])
    assert offsets(file) == [at for at in range(60) if at % 3]
    noted = lake.rows("SELECT * FROM forgotten ORDER BY first_offset")
    assert [row["first_offset"] for row in noted] == list(range(0, 60, 3))
    assert all(row["deleted_at"] and row["forget_id"] == done.forget_id for row in noted)
    assert lake.forget("orders", where).records == 0
    logs = [*(file.parent / "lake").rglob("_delta_log/*.json")]
    assert not [path for path in logs if "eve@people" in path.read_text(encoding="utf-8")]


def test_the_bytes_go_where_no_record_is_left(file: Path) -> None:
    """A table without files looks as one that has none to remove."""
    mirrorlake.open(file).forget("orders", "offset >= 0")
    assert offsets(file) == []
    lake, topology = opened(no_session, file)
    maintain(lake, topology, topology.maintain.model_copy(update={"vacuum_hours": 0}))
    assert not [*(file.parent / "lake" / "records").glob("*.parquet")]


def test_a_predicate_sees_only_the_topics_that_are_named(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its parentheses are."""
    monkeypatch.setattr("mirrorlake.forget.forget.means_the_same", lambda _where: True)
    append(opened(no_session, file)[0], "records", staged(range(5), topic="payments"))
    looked = mirrorlake.open(file).forget("orders", "offset = 1) OR (true", dry_run=True)
    assert looked.records == 60


def test_what_is_not_mapped_yet_waits(file: Path) -> None:
    lake = opened(no_session, file)[0]
    append(lake, "records", staged(range(60, 66)))
    Lease(lake, "flow east->west").take()  # as a process that runs it
    looked = mirrorlake.open(file).forget("orders", "offset >= 58", dry_run=True)
    assert (looked.records, looked.waiting) == (2, 6)
    assert looked.waits == [{"flow": "east->west", "why": "it is running"}]


def test_what_lands_while_flows_are_held_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow that needed nothing before goes on, and may be sending it; its map follows later."""
    file = write_file(tmp_path, flows={"east->west": {}, "east->north": {}})
    lake = opened(no_session, file)[0]
    append(lake, "records", staged(range(60)))
    append(lake, "offset_map", [run_row(0, 49), run_row(0, 59, flow="east->north")])

    def held(self: SourceFlows, names: Iterable[str], *_: object) -> list[FlowPositions]:
        """The target has what was staged before; then more comes."""
        append(lake, "records", staged(range(60, 66)))
        assert [*names] == ["east->west"]
        (west,) = (known for known in self.by_their_maps() if known.flow == "east->west")
        return [replace(west, committed={("orders", 0): GenerationOffset(0, 60)})]

    monkeypatch.setattr(SourceFlows, "held", held)
    monkeypatch.setattr(Internals, "spark", property(lambda _self: no_session()))
    done = mirrorlake.open(file).forget("orders", "offset >= 48")
    assert (done.records, done.waiting) == (2, 10)
    assert offsets(file) == [*range(48), *range(50, 66)]


def test_what_a_flow_that_the_file_lacks_may_have_produced_first_waits(file: Path) -> None:
    """Of its first records nothing is mapped yet: what it notes before it sends them names it."""
    lake = opened(no_session, file)[0]
    noted = NotedTarget(0, "id", "stage", (0, 0))
    for flow, topic in (("east->north", "orders"), ("east->south", "payments")):
        note_targets(lake, flow, {(topic, f"east.{topic}"): noted})
        Lease(lake, f"flow {flow}").take()  # as a process that runs it by another file
    looked = mirrorlake.open(file).forget("orders", "offset >= 58", dry_run=True)
    assert (looked.records, looked.waiting) == (0, 2)
    assert looked.waits == [{"flow": "east->north", "why": "it is running"}]


def test_a_target_is_asked_about_records_of_a_flow_that_the_file_lacks(file: Path) -> None:
    """It may have them, and where each of them is shows only by counting them in the stage."""
    lake, topology = opened(no_session, file)
    note_targets(lake, "east->north", {("orders", "o"): NotedTarget(0, "id", "stage", (0, 0))})
    connections = Connections(topology, {"north": MemoryCluster("north", {"o": [9, 9], "p": [9]})})
    flows = SourceFlows(Deployment.opened(lake, connections), "east", ["orders"])
    places = flows._places("east->north", None)
    assert places == {("o", at): ("orders", at) for at in (0, 1)}


@pytest.mark.parametrize(
    "where", ["CAST(value AS STRING) RLIKE 'x$'", "unknown_function(value) = 1"]
)
def test_spark_is_asked_where_duckdb_may_mean_something_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    asked = []

    def session(_self: Lake) -> SparkSession:
        asked.append(True)
        raise InputError("Spark does not know it either")

    monkeypatch.setattr(Lake, "spark", property(session))
    with pytest.raises(InputError, match="cannot be run: Spark does not know it either"):
        mirrorlake.open(file).forget("orders", where)
    assert asked


def test_spark_is_asked_about_records_that_duckdb_cannot_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (odd,) = staged([60])
    append(opened(no_session, file)[0], "records", [{**odd, "value": b"\xff\xfe"}])
    asked = []

    def session(_self: Lake) -> SparkSession:
        asked.append(True)
        raise InputError("Spark is there")

    monkeypatch.setattr(Lake, "spark", property(session))
    with pytest.raises(InputError, match="cannot be run: Spark is there"):
        mirrorlake.open(file).forget("orders", "CAST(value AS STRING) = 'x'")
    assert asked


def test_no_word_of_a_predicate_is_logged(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """DuckDB names what it could not convert."""

    def session(_self: Lake) -> SparkSession:
        raise InputError("Spark is there")

    monkeypatch.setattr(Lake, "spark", property(session))
    monkeypatch.setattr("mirrorlake.forget.forget.means_the_same", lambda _where: True)
    caplog.set_level("DEBUG")
    with pytest.raises(InputError, match="Spark is there"):
        mirrorlake.open(file).forget("orders", "CAST('eve@people' AS INT) = offset")
    assert "Spark is asked" in caplog.text
    assert "eve@people" not in caplog.text


def test_maintain_leaves_alone_what_a_call_is_still_noting(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would take what is noted behind its look for deleted, and the records would stay."""
    append_all, noted, left = Lake.append, [0], []

    def in_halves(self: Lake, table: str, rows: pa.Table) -> None:
        """The last rows are noted in two parts, and `maintain` comes in between."""
        noted[0] += rows.num_rows if table == "forgotten" else 0
        if table != "forgotten" or noted[0] < 20:
            append_all(self, table, rows)
            return
        append_all(self, table, rows.slice(0, 1))
        left.append(lambda: append_all(self, table, rows.slice(1)))
        finish_calls(opened(no_session, file)[0])
        arrive()

    def arrive(_name: str = "") -> None:
        """The second part is noted, once."""
        while left:
            left.pop()()

    monkeypatch.setattr(Lake, "append", in_halves)
    monkeypatch.setattr(forgetting.failpoints, "reached", arrive)  # between deleted and done
    done = mirrorlake.open(file).forget("orders", f"CAST(value AS STRING) = '{BRACES}'")
    assert done.records == 20
    assert offsets(file) == [at for at in range(60) if at % 3]
    rows = mirrorlake.open(file).rows("SELECT deleted_at FROM forgotten")
    assert len(rows) == 20 and all(row["deleted_at"] for row in rows)


def test_maintain_deletes_what_a_killed_call_had_noted(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_lake: Lake) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(forgetting, "finish", lambda *_: 0)
        patched.setattr(forgetting.failpoints, "reached", killed)
        with pytest.raises(KeyboardInterrupt):
            mirrorlake.open(file).forget("orders", "offset < 2")
    assert len(offsets(file)) == 60
    assert finish_calls(opened(no_session, file)[0]) == 2
    assert offsets(file) == list(range(2, 60))


@pytest.mark.parametrize("is_killed", [False, True], ids=["done", "killed"])
@pytest.mark.parametrize(
    "noted",
    [
        pytest.param('{"topic": "orders"}', id="of the topic"),
        pytest.param(
            "{}",
            id="unreadable",
            marks=pytest.mark.wide("test_what_a_resend_may_need_that_begins_meanwhile_stays"),
        ),
    ],
)
def test_what_a_resend_may_need_that_begins_meanwhile_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch, is_killed: bool, noted: str
) -> None:
    """It noted its beginning before the offsets were noted: it does not leave them out, and counts
    what it has sent in the stage. Others, of another cluster or topic, need none of them; they kept
    these as long as they had not ended, without a word of `maintain`."""
    lake, note = opened(no_session, file)[0], forgetting._Request.note
    log, names = EventLog(lake), ("replay:1:east->west", "restore:1:west->east")

    def late(self: Any, *args: Any) -> None:
        for name in names:
            log.record(name, [Change("replay", "again", after=noted, outcome="begun")])
        other = Change("replay", "again", after='{"topic": "payments"}', outcome="begun")
        log.record("replay:2:east->west", [other])
        note(self, *args)
        if is_killed:
            raise KeyboardInterrupt

    monkeypatch.setattr(forgetting._Request, "note", late)
    if is_killed:
        with pytest.raises(KeyboardInterrupt):
            mirrorlake.open(file).forget("orders", "offset < 2")
    else:
        done = mirrorlake.open(file).forget("orders", "offset < 2")
        assert (done.records, done.waiting, done.deleted_at) == (0, 2, None)
        assert [row["flow"] for row in done.waits] == [names[0]]
    assert finish_calls(lake) == 0
    (call,) = mirrorlake.open(file).maintain(dry_run=True).records["forgotten"]
    assert (call["records"], call["flows"]) == (2, [names[0]])
    assert len(offsets(file)) == 60
    log.record(names[0], [Change("replay", "again", after="records=2")])
    assert mirrorlake.open(file).maintain().records["forgotten"] == []
    assert offsets(file) == list(range(2, 60))


def test_the_topics_of_a_call_go_together(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is noted for all of them: a replay that ended in between kept those of one topic,
    whose records were taken for deleted."""
    lake = opened(no_session, file)[0]
    common = {"source_cluster": "east", "partition": 0, "generation": 0, "forget_id": "1"}
    notes = [{"topic": topic, "first_offset": 0, "last_offset": 1} for topic in ("a", "orders")]
    stood = {"record_count": 2, "noted_at": ago(60)}
    lake.append("forgotten", rows_of("forgotten", [{**common, **stood, **note} for note in notes]))
    answers = iter([["replay:1:east->west"], []])
    monkeypatch.setattr("mirrorlake.lake.forgotten.resends_from", lambda *_: next(answers))
    assert finish_calls(lake) == 0
    assert len(lake.ask("forget_pending")) == 2 and len(offsets(file)) == 60
    assert finish_calls(lake) == 4
    assert not lake.ask("forget_pending") and offsets(file) == list(range(2, 60))
