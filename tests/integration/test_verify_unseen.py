"""`verify` says what it did not see: a mirror that is gone, and all that was selected and is not at
the target."""

import html
import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from mirrorlake import open as opened
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.verify import job, outcome
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake
from tests.support.control import set_configs
from tests.support.kafka import (
    NewRecord,
    create_topic,
    delete_topic,
    read_topic,
    topics_of,
    transactional_producer,
    truncate,
    write,
)
from tests.support.lake_rows import append, record_row
from tests.support.replication import write_topology
from tests.support.topologies import fill, texts, values
from tests.support.waiting import until

COUNT = 20


def scene(clusters: ClusterPair, directory: Path, topic: str, **settings: Any) -> Path:
    """A flow of one topic of COUNT records, at the target."""
    topology = write_topology(
        directory, clusters.east, clusters.west, {"topics": [f"{topic}.*"], **settings}
    )
    create_topic(clusters.east, topic)
    fill(clusters.east, topic, "a", COUNT, 1)
    mirrorlake(topology, "run", "--once")
    return topology


def delete_mirror(clusters: ClusterPair, topic: str) -> None:
    delete_topic(clusters.west, f"east.{topic}")
    until(lambda: f"east.{topic}" not in topics_of(clusters.west), "the mirror is gone")


def places(rows: list[dict[str, Any]], column: str) -> list[tuple[Any, ...]]:
    """Where, and what of a column."""
    return [
        (row["topic"], row["partition"], row["first_offset"], row["last_offset"], row[column])
        for row in rows
    ]


def shares(topology: Path, code: int) -> list[tuple[str, int, float]]:
    """What `status` says of proofs."""
    rows = mirrorlake(topology, "status", code=code)["proofs"]
    return [(row["topic"], row["mapped_records"], row["proven_share"]) for row in rows]


@pytest.mark.wide(
    "unit/verify/test_targets.py::test_a_topic_that_is_gone_is_named_whether_or_not_it_had_records"
)
def test_a_mirror_that_is_gone_is_not_proven(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Whether anybody has noticed yet or not, and until its successor was compared."""
    topology = scene(clusters, tmp_path, topic_name)
    assert mirrorlake(topology, "verify")["proven"] == COUNT
    assert shares(topology, code=0) == [(topic_name, COUNT, 1.0)]
    delete_mirror(clusters, topic_name)
    gone = [(topic_name, 0, 0, COUNT - 1, "target_gone")]
    page = tmp_path / "evidence.html"
    for told in (False, True):  # the second time `run` has reported it
        answer = mirrorlake(topology, "verify", f"--report={page}", code=1)
        assert places(answer["differences"], "kind") == gone
        assert (answer["records"], answer["proven_before"]) == (0, 0)
        assert 'class="bad"' in page.read_text(encoding="utf-8")
        assert shares(topology, code=1) == [(topic_name, COUNT, 0.0)]
        kinds = [row["kind"] for row in mirrorlake(topology, "status", code=1)["incidents"]]
        assert kinds == ["target_recreated"], "an operator hears of it once"
        if not told:
            mirrorlake(topology, "run", "--once", code=1)
    mirrorlake(topology, "resolve", "--topic", topic_name, "--choice", "again")
    mirrorlake(topology, "run", "--once")
    assert shares(topology, code=0) == [(topic_name, COUNT, 0.0)], (
        "what the topic before it had proves nothing"
    )
    answer = mirrorlake(topology, "verify")
    assert (answer["records"], answer["proven"], answer["proven_before"]) == (COUNT, COUNT, 0)
    assert shares(topology, code=0) == [(topic_name, COUNT, 1.0)]
    assert values(read_topic(clusters.west, f"east.{topic_name}")[0]) == texts("a", COUNT, 1)


@pytest.mark.wide(
    "unit/verify/test_targets.py::test_a_topic_that_is_gone_is_named_whether_or_not_it_had_records"
)
def test_what_waits_for_a_mirror_that_is_gone_is_not_passed_over(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Nothing had been brought there, so that no difference names it; an operator has to decide."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name)
    mirrorlake(topology, "run", "--once")
    assert mirrorlake(topology, "verify")["not_compared"] == []
    delete_mirror(clusters, topic_name)
    fill(clusters.east, topic_name, "a", COUNT, 1)
    for _ in range(2):  # the second time `run` has landed them
        answer = mirrorlake(topology, "verify", "--topic", topic_name, code=1)
        assert places(answer["not_compared"], "reason") == [(topic_name, 0, 0, None, "refused")]
        assert (answer["differences"], answer["records"]) == ([], 0)
        mirrorlake(topology, "run", "--once", code=1)
    mirrorlake(topology, "resolve", "--topic", topic_name, "--choice", "again")
    mirrorlake(topology, "run", "--once")
    assert mirrorlake(topology, "verify")["proven"] == COUNT


@pytest.mark.wide(
    "unit/verify/test_targets.py::test_a_topic_that_is_gone_is_named_whether_or_not_it_had_records"
)
def test_a_mirror_that_nobody_mirrors_any_more_may_go(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topology = scene(clusters, tmp_path, topic_name)
    mirrorlake(topology, "verify")
    write_topology(tmp_path, clusters.east, clusters.west, {"topics": ["another"]})
    delete_mirror(clusters, topic_name)
    answer = mirrorlake(topology, "verify")
    assert (answer["differences"], answer["proven_before"]) == ([], 0)


def unseen(found: dict[str, Any], prefix: str) -> list[tuple[Any, ...]]:
    """What was not compared, without the common beginning of the topics' names."""
    return [
        (row[0].removeprefix(prefix), *row[1:]) for row in places(found["not_compared"], "reason")
    ]


@pytest.mark.wide("unit/verify/test_not_compared.py::test_why")
@pytest.mark.law("never more than was seen")
def test_what_was_selected_and_not_compared_is_listed(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Nothing was brought; then all but what is paused, refused, or came since; then all. An
    aborted transaction and its marker behind the last record of a topic are no records."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": ["nothing"]})
    mirrorlake(topology, "run", "--once")
    write_topology(tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]})
    for name in ("", "-paused", "-refused"):
        create_topic(clusters.east, f"{topic_name}{name}")
        fill(clusters.east, f"{topic_name}{name}", "a", COUNT, 1)
    producer = transactional_producer(clusters.east)
    producer.begin_transaction()
    producer.produce(topic_name, b"aborted")
    producer.flush()
    producer.abort_transaction()
    write(clusters.east, f"{topic_name}-refused", [NewRecord(os.urandom(2_000))])
    answer = mirrorlake(topology, "verify", code=1)
    assert unseen(answer, topic_name) == [
        ("", 0, 0, COUNT + 1, "not_staged"),
        ("-paused", 0, 0, COUNT - 1, "not_staged"),
        ("-refused", 0, 0, COUNT, "not_staged"),
    ]
    settings = {"topics": [f"{topic_name}.*"], "sync_topic_configs_enabled": False}
    write_topology(
        tmp_path, clusters.east, clusters.west, {**settings, "paused": [f"{topic_name}-paused"]}
    )
    create_topic(clusters.west, f"east.{topic_name}-refused", **{"max.message.bytes": "1000"})
    mirrorlake(topology, "run", "--once", code=1)
    fill(clusters.east, topic_name, "b", 5, 1)
    page = tmp_path / "evidence.html"
    answer = mirrorlake(topology, "verify", f"--report={page}", code=1)
    assert unseen(answer, topic_name) == [
        ("", 0, COUNT + 2, COUNT + 6, "not_staged"),
        ("-paused", 0, 0, COUNT - 1, "paused"),
        ("-refused", 0, COUNT, COUNT, "refused"),
    ]
    assert answer["differences"] == [] and answer["proven"] == 2 * COUNT
    assert "target_refused" in answer["not_compared"][2]["detail"]
    assert 'class="bad"' in page.read_text(encoding="utf-8") and "not_staged" in page.read_text(
        encoding="utf-8"
    )
    write_topology(tmp_path, clusters.east, clusters.west, settings)
    mirrorlake(topology, "resolve", "--topic", f"{topic_name}-refused", "--choice", "park")
    mirrorlake(topology, "run", "--once")
    answer = mirrorlake(topology, "verify")
    assert (answer["not_compared"], answer["excused"], answer["differences"]) == (
        [],
        {"parked": 1},
        [],
    )
    assert answer["proven"] + answer["proven_before"] == 3 * COUNT + 5 + 1


def truncated(bootstrap: str, topic: str, offset: int) -> bool:
    """Whether records could be deleted; a broker hears of a topic's new configs somewhat later than
    the controller."""
    try:
        truncate(bootstrap, topic, offset)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.POLICY_VIOLATION:
            raise
        return False
    return True


@pytest.mark.wide("integration/test_verify.py::test_each_kind_is_found_and_named")
def test_a_compacted_mirror_has_to_have_the_last_record_of_each_key(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """60 records of ten keys; what the target has no more is as if compaction had taken it, and
    then more than that."""
    mirror = f"east.{topic_name}"
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(
        clusters.east,
        topic_name,
        **{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0"},
    )
    records = [NewRecord(str(at).encode(), str(at % 10).encode()) for at in range(60)]
    write(clusters.east, topic_name, records)
    mirrorlake(topology, "run", "--once")
    told = []
    for start, code in ((50, 0), (55, 1), (60, 1)):
        set_configs(clusters.west, mirror, {"cleanup.policy": "delete"})
        until(partial(truncated, clusters.west, mirror, start), "the records can be deleted")
        set_configs(clusters.west, mirror, {"cleanup.policy": "compact"})
        answer = mirrorlake(topology, "verify", "--again", code=code)
        told.append((answer["proven"], answer["excused"], places(answer["differences"], "kind")))
    assert told == [
        (10, {"superseded": 50}, []),
        (0, {"superseded": 50}, [(topic_name, 0, 50, 54, "missing_at_target")]),
        (0, {"superseded": 50}, [(topic_name, 0, 50, 59, "missing_at_target")]),
    ]
    verdicts = mirrorlake(topology, "sql", "SELECT verdict FROM audits ORDER BY audited_at")
    assert [row["verdict"] for row in verdicts] == [
        "superseded",
        "missing_at_target",
        "missing_at_target",
    ]


@pytest.mark.wide("unit/verify/test_outcome.py::test_what_is_not_kept_is_counted")
def test_evidence_that_is_cut_says_so_and_how_to_get_the_rest(
    clusters: ClusterPair, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four records of each of two partitions differ."""
    monkeypatch.setattr(job, "MAX_LISTED", 3)
    monkeypatch.setattr(outcome, "MOST_ROWS", 1)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name, partitions=2)
    fill(clusters.east, topic_name, "a", COUNT, 2)
    mirrorlake(topology, "run", "--once")
    PathTables(tmp_path / "lake").rewrite("records", with_other_values)
    lake = opened(topology)
    verified = lake.verify()
    assert len(verified.differences) == 6 and verified.cut == {"ranges": 1, "differences": 2}
    page = tmp_path / "evidence.html"
    verified.write(page)
    for sentence in verified.cut_sentences:
        assert html.escape(sentence) in page.read_text(encoding="utf-8")
    query = verified.cut_sentences[1].partition('"')[2].rstrip('"')
    assert [row["untold_differences"] for row in lake.rows(query)] == [1, 1], (
        "the table has what the page has not"
    )


def with_other_values(rows: pa.Table) -> pa.Table:
    """What the stage holds, and other values at some offsets that are no neighbours."""
    found = rows.to_pylist()
    for row in found:
        if row["offset"] in (1, 3, 5, 7):
            row["value"] = b"other"
    return pa.Table.from_pylist(found, rows.schema)


@pytest.mark.wide("unit/verify/test_not_compared.py::test_a_head_of_the_log_that_was_never_landed")
def test_a_head_of_the_log_that_was_never_landed_is_listed(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """The flow began behind it, of which then nothing says that it was meant to."""
    create_topic(clusters.east, topic_name)
    fill(clusters.east, topic_name, "a", COUNT, 1)
    settings = {"topics": [topic_name], "start": "latest"}
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    mirrorlake(topology, "run", "--once")
    fill(clusters.east, topic_name, "b", 5, 1)
    mirrorlake(topology, "run", "--once")
    assert mirrorlake(topology, "verify")["not_compared"] == []
    for table in ("starts", "removals"):  # that landing has passed over it is no reason alone
        DeltaTable(str(tmp_path / "lake" / table)).delete()
        answer = mirrorlake(topology, "verify", code=1)
        assert unseen(answer, topic_name) == [("", 0, 0, COUNT - 1, "not_staged")]
        assert answer["differences"] == []


@pytest.mark.wide("unit/verify/test_what_lies_behind_the_map.py::test_it_is_named")
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_what_lies_behind_the_map_where_no_position_says_whose_it_is(
    clusters: ClusterPair, topic_name: str, tmp_path: Path, delivery: str
) -> None:
    """The target forgets the position of a flow that rests for a week, and never has one of a flow
    that is not exactly once. Markers of transactions are no records."""
    mirror = f"east.{topic_name}"
    topology = scene(clusters, tmp_path, topic_name, delivery=delivery)
    lake = opened(topology).internals.tables
    if delivery == "exactly_once":
        group = name_at_target(lake.lake_id, "east->west")
        admin = AdminClient({"bootstrap.servers": clusters.west})
        admin.delete_consumer_groups([group])[group].result(30)
    assert mirrorlake(topology, "verify")["not_compared"] == []
    producer = transactional_producer(clusters.west)
    producer.begin_transaction()
    producer.produce(mirror, b"aborted")
    producer.flush()
    producer.abort_transaction()
    assert mirrorlake(topology, "verify")["not_compared"] == []
    write(clusters.west, mirror, [NewRecord(b"strange")])
    answer = mirrorlake(topology, "verify", code=1)
    assert unseen(answer, topic_name) == [("", 0, COUNT, None, "no_answer")]
    (record,) = read_topic(clusters.west, mirror)[0][COUNT:]
    detail = f"what {mirror}-0 has from its offset {record.offset} on is not compared"
    assert detail in answer["not_compared"][0]["detail"]
    assert answer["differences"] == []
    append(lake, "offset_map", [record_row("north->west", (topic_name, 0, 0), 0, mirror, 900)])
    assert mirrorlake(topology, "verify")["not_compared"] == [], "another flow writes there, too"
