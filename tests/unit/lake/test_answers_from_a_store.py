"""What an answer asks of an object store: it does not grow with the files that are staged."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.transaction import AddAction

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.delta_log import DeltaLog, files_of, layout_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.layout import in_layout
from mirrorlake.lake.own_commits import NewFile, keys_of, replace_files
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import Place
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.run.status import read_status
from tests.support.object_store import Store
from tests.support.store_link import Fault, Request, StoreLink, link_to

NOW = datetime.now(timezone.utc)
MS = int(NOW.timestamp() * 1000)
PLACE = {"source_cluster": "east", "topic": "orders", "generation": 0}
PARTITIONS = (0, 1)


@pytest.fixture(scope="module")
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


@pytest.fixture
def place(link: StoreLink, request: pytest.FixtureRequest) -> Place:
    return Store(link.address).place(request.node.name)


def test_status_opens_no_file_of_the_stage_however_many_there_are(
    link: StoreLink, place: Place, tmp_path: Path
) -> None:
    """Files of several partitions, of earlier days, none of which is there. All that is staged is
    in the map, and of what came today, between whose records the source has a marker, the rows are
    compared."""
    tables, asked = PathTables(place), []
    for table in ("records", "offset_map", "objectives"):
        tables.create(table)
    flow = {"flow": "east->west", "enabled": True, "gaps": True, "mode": "once", "since": NOW}
    tables.append("objectives", rows_of("objectives", [flow]))
    today = [
        {**PLACE, "topic": "today", "partition": 0, "offset": offset, "batch_id": MS}
        for offset in (0, 1, 3)
    ]
    tables.append("records", rows_of("records", today))
    tables.append("offset_map", mapped("today", 0, 0, 1))
    tables.append("offset_map", mapped("today", 0, 3, 3))
    for known, files in ((0, 30), (30, 120)):
        adds = [
            AddAction(f"task-{number}.parquet", 1_000, {}, number, True, statistics(number))
            for number in range(known, files)
        ]
        tables.add_files("records", adds, "a", files)
        for partition in PARTITIONS:
            tables.append("offset_map", mapped("orders", partition, 10 * known, 10 * files - 1))
        for table in ("records", "offset_map"):
            tables.write_log_checkpoint(table)
        before, lake = len(link.requests), DuckLake(place, tmp_path / "nothing yet")
        status = read_status(lake, None)
        assert [row["alert"] for row in status["alerts"]] == []
        proofs = {row["topic"]: row["mapped_records"] for row in status["proofs"]}
        assert proofs == {"orders": 2 * 10 * files, "today": 3}
        staged = StageFiles(lake).ends("east")
        assert staged[("orders", 1)] == (0, 10 * files) and staged[("today", 0)] == (0, 4)
        asked.append(sum(link.counted(before).values()))
    assert asked[1] <= asked[0] + 2 * len(PARTITIONS), "files of the map, which upkeep makes few"


def test_a_question_asks_for_no_table_but_those_that_it_names(
    link: StoreLink, place: Place, tmp_path: Path
) -> None:
    """Whatever else was asked for before: at a start each thread asks some things."""
    tables = PathTables(place)
    for table in ("changes", "clusters", "incidents"):
        tables.create(table)
    lake = DuckLake(place, tmp_path / "nothing yet")
    for table in ("changes", "clusters", "incidents"):
        assert lake.table_rows(table) == []
    before = len(link.requests)
    lake.refresh()
    assert lake.table_rows("open_incidents") == lake.table_rows("incidents") == []
    asked = link.requests[before:]
    assert [table_of(request) for request in asked] == ["incidents", "incidents"]
    incident = {"flow": "east->west", "at": NOW, "kind": "k", "incident_id": "i"}
    tables.append("incidents", rows_of("incidents", [incident]))
    assert lake.table_rows("open_incidents") == [], "until it is asked anew"
    lake.refresh()
    assert len(lake.table_rows("open_incidents")) == len(lake.table_rows("incidents")) == 1


class Together:
    """Lets no request about one table go on before there is one about another, or some seconds are
    over."""

    def __init__(self) -> None:
        self.both, self.alone, self.tables = threading.Event(), 0, set[str]()

    def __call__(self, request: Request) -> Fault | None:
        self.tables.add(table_of(request))
        if len(self.tables - {"records"}) > 1:
            self.both.set()
        if table_of(request) != "records" and not self.both.wait(3):
            self.alone += 1
            self.both.set()
        return None


def test_what_a_question_names_is_opened_side_by_side(
    link: StoreLink, place: Place, tmp_path: Path
) -> None:
    tables = PathTables(place)
    for table in ("positions", "latency"):
        tables.create(table)
    for again in (False, True):
        lake = DuckLake(place, tmp_path / "nothing yet")
        if again:
            assert lake.table_rows("partition_status") == []
            lake.refresh()
        link.fault = together = Together()
        assert lake.table_rows("partition_status") == []
        link.fault = lambda _request: None
        assert not together.alone and together.tables > {"positions", "latency"}


def incidents(place: Place, count: int) -> PathTables:
    """A table with a small file for each of some rows."""
    tables = PathTables(place)
    tables.create("incidents")
    for number in range(count):
        incident = {"flow": "east->west", "at": NOW, "kind": "k", "incident_id": str(number)}
        tables.append("incidents", rows_of("incidents", [incident]))
    return tables


def test_small_files_of_a_table_are_read_side_by_side(
    link: StoreLink, place: Place, tmp_path: Path
) -> None:
    """However few threads DuckDB has, and whichever file these open first."""
    incidents(place, 12)
    lake = DuckLake(place, tmp_path / "nothing yet")
    lake.open_together(["incidents"])
    asked, many, before = list[str](), threading.Event(), len(link.requests)

    def together(request: Request) -> Fault | None:
        asked.append(request.key)
        if len(asked) == 8:
            many.set()
        many.wait(10)  # none is answered before so many are asked for
        return None

    link.fault = together
    began = time.monotonic()
    assert len(lake.table_rows("incidents")) == 12
    assert time.monotonic() - began < 10
    link.fault = lambda _request: None
    assert link.counted(before) == {"GET": 12}


def test_no_file_is_read_that_the_table_has_no_more(place: Place, tmp_path: Path) -> None:
    incidents(place, 3)
    lake, log = DuckLake(place, tmp_path / "nothing yet"), DeltaLog(place / "incidents")
    lake.open_together(["incidents"])
    version, files = log.newest(), files_of(log.opened())
    *_, last = files
    assert replace_files(log, version, {last: files[last]}, []) == version + 1
    (log.table / last).delete()
    lake.refresh()
    assert len(lake.table_rows("incidents")) == 2


def test_what_was_opened_together_is_ready(link: StoreLink, place: Place, tmp_path: Path) -> None:
    tables = PathTables(place)
    for table in ("records", "incidents"):
        tables.create(table)
    lake = DuckLake(place, tmp_path / "nothing yet")
    lake.open_together(["open_incidents"])
    before = len(link.requests)
    assert lake.table_rows("open_incidents") == []
    assert link.requests[before:] == []


def test_what_came_behind_an_open_table_is_staged_all_the_same(
    place: Place, tmp_path: Path
) -> None:
    tables = PathTables(place)
    tables.create("records")
    lake = DuckLake(place, tmp_path / "nothing yet")
    assert lake.table_rows("records") == []
    add = AddAction("task-0.parquet", 1_000, {}, 0, True, statistics(0))
    tables.add_files("records", [add], "a", 0)
    assert StageFiles(lake).ends("east") == {("orders", at): (0, 10) for at in PARTITIONS}


def test_what_the_log_says_of_files_is_known_without_a_checkpoint_too(
    link: StoreLink, place: Place, tmp_path: Path
) -> None:
    tables = PathTables(place)
    tables.create("records")
    for number in range(3):
        add = AddAction(f"task-{number}.parquet", 1_000, {}, number, True, statistics(number))
        tables.add_files("records", [add], "a", number)
    stage = StageFiles(DuckLake(place, tmp_path / "nothing yet"))
    assert stage.ends("east") == {("orders", partition): (0, 30) for partition in PARTITIONS}


def test_the_commits_that_say_it_are_read_side_by_side(link: StoreLink, place: Place) -> None:
    tables = PathTables(place)
    tables.create("records")
    for number in range(3):
        add = AddAction(f"task-{number}.parquet", 1_000, {}, number, True, statistics(number))
        tables.add_files("records", [add], "a", number)
    met, alone = threading.Barrier(4), list[str]()

    def together(request: Request) -> Fault | None:
        if request.key.endswith(".json"):
            try:
                met.wait(5)
            except threading.BrokenBarrierError:
                alone.append(request.key)
        return None

    link.fault = together
    stated = dict(DeltaLog(place / "records").statistics(3))
    link.fault = lambda _request: None
    assert len(stated) == 3 and not alone


def test_a_file_that_takes_the_place_of_others_need_not_be_opened_either(
    place: Place, tmp_path: Path
) -> None:
    tables = PathTables(place)
    tables.create("records")
    table, log = tables.opened("records"), DeltaLog(place / "records")
    file = NewFile(log.table, layout_of(table), keys_of(table))
    for first in (0, 5):
        rows = [
            {**PLACE, "partition": partition, "offset": first + at}
            for partition in PARTITIONS
            for at in range(5)
        ]
        file.write(in_layout(rows_of("records", rows), layout_of(table)))
    file.close()
    assert replace_files(log, table.version(), {}, [file]) == 1
    file.place.delete()
    stage = StageFiles(DuckLake(place, tmp_path / "nothing yet"))
    with stage.reading() as index:
        assert [staged[1:] for _, staged in index.rows()] == [
            ("orders", partition, 0, 0, 9, 10) for partition in PARTITIONS
        ]


def table_of(request: Request) -> str:
    """The table whose files a request is about."""
    return request.key.split("/")[1]


def statistics(number: int) -> str:
    """What landing says of a file of ten records of each partition."""
    first, last = 10 * number, 10 * number + 9
    least, most = (
        {**PLACE, "partition": partition, "offset": offset, "batch_id": number}
        for partition, offset in ((PARTITIONS[0], first), (PARTITIONS[-1], last))
    )
    ranges = [["east", "orders", partition, 0, first, last, 10] for partition in PARTITIONS]
    return json.dumps(
        {
            "numRecords": 10 * len(PARTITIONS),
            "minValues": least,
            "maxValues": most,
            "nullCount": dict.fromkeys(least, 0),
            "ranges": ranges,
        }
    )


def mapped(topic: str, partition: int, first: int, last: int) -> pa.Table:
    """A row of the map."""
    row = {"flow": "east->west", "topic": topic, "target_topic": f"east.{topic}"}
    row |= {"partition": partition, "target_partition": partition, "produced_at": NOW}
    row |= {"source_first": first, "source_last": last, "target_first": first, "target_last": last}
    return rows_of("offset_map", [{**row, "record_count": last - first + 1, "batch_id": MS}])
