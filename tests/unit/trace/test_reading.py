"""A record's life, read by DuckDB from tables that delta-rs wrote: what of many rows belongs to one
record."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import mirrorlake
from mirrorlake.cli.main import app
from mirrorlake.errors import InputError, UnknownOffset
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.library.tracing import Trace
from tests.support.lake_rows import parked_row

FLOW = "east->west"
NOW = datetime.now(timezone.utc)
Ask = Callable[..., Trace]


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def record(
    offset: int, written: float, landed: float, topic: str = "orders", **more: object
) -> dict[str, object]:
    batch = int(ago(landed).timestamp() * 1000)
    place = {
        "source_cluster": "east",
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "generation": 0,
    }
    common = {
        "timestamp": ago(written),
        "timestamp_type": 0,
        "landed_at": ago(landed),
        "batch_id": batch,
    }
    return {**place, **common, "key": f"key {offset % 4}".encode(), "value": b"x" * 10, **more}


def run(
    first: int, count: int, target: int, produced: float, stride: int = 1, **more: object
) -> dict[str, object]:
    last = first + (count - 1) * stride
    return {
        "flow": FLOW,
        "topic": "orders",
        "partition": 0,
        "source_first": first,
        "source_last": last,
        "target_topic": "east.orders",
        "target_partition": 0,
        "target_first": target,
        "target_last": target + count - 1,
        "record_count": count,
        "produced_at": ago(produced),
        "batch_id": first,
        "generation": 0,
        "target_generation": 0,
        "segments": [
            {"source_first": first, "stride": stride, "target_first": target, "record_count": count}
        ],
        **more,
    }


def sample(at: float, end: int, staged: int, produced: int) -> dict[str, object]:
    place = {"flow": FLOW, "topic": "orders", "partition": 0, "target_topic": "east.orders"}
    ends = {
        "source_end": end,
        "staged_end": staged,
        "produced_end": produced,
        "lag_records": end - produced,
    }
    return {**place, "sampled_at": ago(at), "source_start": 0, **ends}


def checkpoint(
    group: str, at: float, position: int, target: int, **more: object
) -> dict[str, object]:
    place = {
        "flow": FLOW,
        "group_id": group,
        "topic": "orders",
        "partition": 0,
        "target_topic": "east.orders",
    }
    return {
        **place,
        "source_position": position,
        "target_position": target,
        "checkpointed_at": ago(at),
        **more,
    }


#: Offsets 0 to 18, even ones only, in two batches; 18 is refused. Nobody ran the flow between 300
#: and 200 s ago.
TABLES: Mapping[str, list[dict[str, object]]] = {
    "records": [
        *(record(offset, 400, 399) for offset in range(0, 10, 2)),
        *(record(offset, 290, 190) for offset in range(10, 20, 2)),
        *(record(offset, 290, 190, "others") for offset in range(7)),
        record(0, 500, 389, "first"),
    ],
    "offset_map": [run(0, 5, 100, 398, 2), run(10, 4, 106, 150, 2)],
    "latency": [
        {
            "flow": FLOW,
            "batch_id": 10,
            "topic": topic,
            "partition": 0,
            "record_count": count,
            "way": "short",
        }
        for topic, count in (("orders", 4), ("others", 7))
    ],
    "positions": [
        *(sample(at, 10, 10, 10) for at in (390, 360, 330, 300)),
        *(sample(at, 20, 20, 18) for at in range(200, 0, -10)),
    ],
    "incidents": [
        {
            "flow": FLOW,
            "at": ago(180),
            "kind": "target_refused",
            "topic": "orders",
            "partition": 0,
            "first_offset": 18,
            "last_offset": 18,
            "detail": "too large",
        },
        {"flow": FLOW, "at": ago(180), "kind": "control_acls", "detail": "no right"},
        {
            "flow": "east->lab",
            "at": ago(180),
            "kind": "source_refused",
            "topic": "orders",
            "partition": 1,
        },
    ],
    "checkpoints": [
        checkpoint("billing", 395, 6, 103, synced=True),
        checkpoint("billing", 140, 18, 110, synced=True),
        checkpoint("reports", 100, 4, 102, synced=False),
    ],
    "objectives": [{"flow": FLOW, "mode": "continuous", "enabled": True}],
}


def make(place: Path, tables: Mapping[str, list[dict[str, object]]] = TABLES) -> Path:
    made = PathTables(place / "lake")
    for name, rows in tables.items():
        made.create(name)
        made.append(name, rows_of(name, rows))
    return place / "lake"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("trace"))


@pytest.fixture(scope="module")
def ask(lake: Path) -> Ask:
    return mirrorlake.open(path=lake).flows[FLOW].trace


def test_a_record_behind_a_pause(ask: Ask) -> None:
    answer = ask("orders", 0, 12)
    assert (answer.state, answer.target_topic, answer.target_offset) == (
        "at_target",
        "east.orders",
        107,
    )
    assert answer.latency_ms == {"landing": 100_000, "producing": 40_000, "replication": 140_000}
    said = {item["what"]: item["said"] for item in answer.held_up}
    assert set(said) == {"not running", "backlog in the stage"}, "not the refused record behind it"
    assert "for 1 min 40 s" in said["not running"] and said["backlog in the stage"].startswith(
        "1 staged"
    )
    stages = {stage["stage"]: stage["said"] for stage in answer.stages}
    assert "12 records, 5 of its partition" in stages["landed"]
    assert "11 records, 4 of its partition, the short way" in stages["produced"]


def test_a_record_that_was_there_before_the_flow_ran(ask: Ask) -> None:
    item = ask("first", 0, 0).held_up[0]
    assert (item["what"], item["until"]) == ("first start", ago(390).replace(tzinfo=None))
    assert abs(item["since"] - ago(500).replace(tzinfo=None)) < timedelta(milliseconds=2)
    assert item["said"].startswith(
        "the flow started for the first time in a week at least: its first sample is of "
    )
    assert not [row for row in ask("orders", 0, 4).held_up if row["what"] == "first start"], (
        "10 s before it"
    )


def test_who_reads(ask: Ask) -> None:
    answer = ask("orders", 0, 12)
    readers = {(row["group_id"], row["side"]): row for row in answer.readers}
    assert set(readers) == {("billing", "source"), ("billing", "target"), ("reports", "source")}
    assert [key for key, row in readers.items() if row["is_past"]] == [
        ("billing", "source"),
        ("billing", "target"),
    ]
    assert readers["billing", "target"]["position"] == 110
    assert "not yet read past by: reports (source)" in "\n".join(answer.lines())
    first = {
        row["side"]: row["passed_at"]
        for row in ask("orders", 0, 4).readers
        if row["group_id"] == "billing"
    }
    assert first["source"] < ago(390).replace(tzinfo=None), (
        "when it was first past it, not when it was seen last"
    )


def test_a_refused_record(ask: Ask) -> None:
    answer = ask("orders", 0, 18)
    assert (answer.state, answer.needs_somebody, answer.target_offset) == ("refused", True, None)
    assert "too large" in answer.sentence and [row["kind"] for row in answer.incidents] == [
        "target_refused"
    ]


def test_what_is_no_record(ask: Ask) -> None:
    assert (
        ask("orders", 0, 11).state == "no_record"
        and "10 before it and 12 behind" in ask("orders", 0, 11).sentence
    )
    assert ask("orders", 0, 20).state == "beyond_end"
    with pytest.raises(UnknownOffset, match="never seen partition 7 of source topic orders"):
        ask("orders", 7, 1)


def test_the_way_back(ask: Ask) -> None:
    assert ask("east.orders", 0, 107, reverse=True).offset == 12
    with pytest.raises(UnknownOffset, match="offset 105 of target east.orders-0 holds no record"):
        ask("east.orders", 0, 105, reverse=True)


def test_the_newest_record_with_a_key(ask: Ask) -> None:
    assert ask("orders", key="key 2").offset == 18
    assert ask("orders", key="0x6b65792030").offset == 16
    assert ask("orders", key="key 2", since=ago(300)).offset == 18
    for wrong, said in ((ago(200), "since"), (None, "byte by byte")):
        with pytest.raises(InputError, match=said):
            ask("orders", key="key 2" if wrong else "KEY 2", since=wrong)
    with pytest.raises(InputError, match="hexadecimal"):
        ask("orders", key="0xz")


def command(lake: Path, flow: Mapping[str, object], *arguments: str) -> tuple[int, Any]:
    file = lake.parent / "mirrorlake.yml"
    clusters = {alias: {"bootstrap_servers": "127.0.0.1:1"} for alias in ("east", "west")}
    file.write_text(
        json.dumps({"clusters": clusters, "lake": {"path": str(lake)}, "flows": {FLOW: flow}})
    )
    words = ["-c", str(file), "trace", "--flow", FLOW, "--topic", "orders", *arguments]
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.exception if isinstance(done.exception, InputError) else done.stdout


def test_the_command(lake: Path) -> None:
    place = ("--partition", "0", "--offset")
    code, text = command(lake, {}, *place, "12")
    assert code == 0 and "at the target: east.orders-0, offset 107" in text and "1 min 40 s" in text
    code, text = command(lake, {}, *place, "18", "--json")
    assert code == 1 and json.loads(text)["state"] == "refused"
    assert json.loads(command(lake, {}, "--key", "key 2", "--json")[1])["offset"] == 18
    for wrong in (
        (),
        ("--offset", "3"),
        ("--key", "a", "--offset", "3"),
        (*place, "1", "--since", "2026-01-01"),
    ):
        assert isinstance(command(lake, {}, *wrong)[1], InputError)


@pytest.mark.parametrize(
    ("flow", "state"), [({"paused": ["ord.*"]}, "paused"), ({"enabled": False}, "disabled")]
)
def test_what_the_file_says_now_holds_it(
    tmp_path: Path, flow: dict[str, object], state: str
) -> None:
    waiting = {**TABLES, "incidents": TABLES["incidents"][1:]}
    code, text = command(
        make(tmp_path, waiting), flow, "--partition", "0", "--offset", "18", "--json"
    )
    assert (code, json.loads(text)["state"]) == (1, state)


@pytest.mark.parametrize(
    ("mirror", "stops"),
    [
        ({"target_topic": "east.orders", "target_generation": 1}, True),
        ({"target_topic": "east.orders", "target_generation": 0}, False),
        *(
            pytest.param(
                *case,
                marks=pytest.mark.wide("test_what_was_stopped_of_another_mirror_stops_nothing_now"),
            )
            for case in (({}, True), ({"target_topic": "orders", "target_generation": 0}, False))
        ),
    ],
)
def test_what_was_stopped_of_another_mirror_stops_nothing_now(
    tmp_path: Path, mirror: dict[str, object], stops: bool
) -> None:
    """The flow had it under another policy, or its topic was made again."""
    stopped = {**TABLES["incidents"][0], "resolution": "stop", "resolved_at": ago(170), **mirror}
    generations = [{**TARGET, "target_generation": number} for number in (0, 1)]
    tables = {**TABLES, "incidents": [stopped], "target_generations": generations}
    flow = mirrorlake.open(path=make(tmp_path, tables)).flows[FLOW]
    answer = flow.trace("orders", 0, 18)
    assert (answer.state == "stopped") is stops and len(answer.incidents) == 1


def test_a_parked_record(tmp_path: Path) -> None:
    parked = [parked_row(offset, ago(170)) for offset in (12, 18)]
    flow = mirrorlake.open(
        path=make(tmp_path, {**TABLES, "incidents": [], "parked": parked})
    ).flows[FLOW]
    assert (flow.trace("orders", 0, 18).state, flow.trace("orders", 0, 12).state) == (
        "parked",
        "at_target",
    )


#: A record that is staged beside others that the flow has sent: 16 is the last one of its map.
BESIDE = record(11, 290, 190)
PLACED: dict[str, object] = {"topic": "orders", "partition": 0, "generation": 0}
STARTS = {"flow": FLOW, **PLACED, "first_offset": 12, "asked": "latest", "noted_at": ago(400)}
FORGOTTEN = {"source_cluster": "east", **PLACED, "first_offset": 11, "last_offset": 11}
FORGOTTEN |= {"record_count": 1, "forget_id": "a", "noted_at": ago(100)}
REPLAYED = run(11, 1, 300, 50, flow=f"replay:abc:{FLOW}")
TARGET = {"flow": FLOW, "topic": "orders", "target_topic": "east.orders", "target_generation": 0}
TARGET |= {"topic_id": "its id", "started_at": ago(400), "begins": "stage", "began": [0]}


@pytest.mark.parametrize(
    ("more", "state", "needs"),
    [
        ({}, "passed_over", True),
        ({"starts": [STARTS]}, "before_start", False),
        ({"forgotten": [FORGOTTEN]}, "forgotten", False),
        ({"offset_map": [REPLAYED], "target_generations": [TARGET]}, "replayed", False),
        ({"offset_map": [{**REPLAYED, "target_topic": "other"}], "target_generations": [TARGET]},
         "passed_over", True),
    ],
    ids=["passed over", "before the start", "forgotten", "replayed", "replayed to another topic"],
)  # fmt: skip
def test_a_record_that_the_flow_does_not_come_to_any_more(
    tmp_path: Path, more: Mapping[str, list[dict[str, object]]], state: str, needs: bool
) -> None:
    """It was called waiting, in a flow that runs."""
    tables = {**TABLES, "incidents": [], "records": [*TABLES["records"], BESIDE]}
    tables |= {name: [*tables.get(name, []), *rows] for name, rows in more.items()}
    answer = mirrorlake.open(path=make(tmp_path, tables)).flows[FLOW].trace("orders", 0, 11)
    assert (answer.state, answer.needs_somebody) == (state, needs)


def test_a_record_that_was_forgotten_is_no_marker(tmp_path: Path) -> None:
    lake = make(tmp_path, {**TABLES, "forgotten": [FORGOTTEN]})
    assert mirrorlake.open(path=lake).flows[FLOW].trace("orders", 0, 11).state == "forgotten"


def test_a_record_that_left_the_stage_is_one_of_the_log_that_is_there(tmp_path: Path) -> None:
    """The topic was made again: both logs had the offset."""
    again = [*TABLES["offset_map"], run(0, 5, 500, 100, 2, generation=1)]
    lake = make(tmp_path, {**TABLES, "records": [], "offset_map": again})
    answer = mirrorlake.open(path=lake).flows[FLOW].trace("orders", 0, 4)
    assert (answer.state, answer.target_offset) == ("at_target", 502)


@pytest.mark.parametrize(
    "named",
    [
        lambda flow: flow.trace("east.orders", 0, 102, reverse=True),
        lambda flow: flow.trace("orders", key="of the first log"),
    ],
    ids=["by its place at the target", "by its key"],
)
def test_a_record_of_a_log_that_is_over_is_not_taken_for_another_one(
    tmp_path: Path, named: Callable[[Any], Trace]
) -> None:
    """The topic was made again: its new log has another record at the same offset."""
    staged = [record(4, 400, 399, key=b"of the first log"), record(4, 200, 199, generation=1)]
    runs = [run(0, 5, 100, 398, 2), run(0, 5, 500, 190, 2, generation=1)]
    lake = make(tmp_path, {**TABLES, "records": staged, "offset_map": runs})
    answer = named(mirrorlake.open(path=lake).flows[FLOW])
    assert (answer.offset, answer.generation, answer.target_offset) == (4, 0, 102)
