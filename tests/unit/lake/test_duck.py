"""A lake in a folder, read by DuckDB: what is missing, what came since, what is refused; and no
Spark is imported."""

import json
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import mirrorlake
from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.definitions import TABLES, VIEWS, definition, rows_of
from mirrorlake.lake.dialect import to_duckdb
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.opening import check_location
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.reader import Frame

AT = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
CHANGE = {"flow": "east->west", "at": AT, "kind": "topic", "resource": "größe"}


def append(place: Path, table: str, *rows: dict[str, object]) -> None:
    write_deltalake(
        str(place / table), pa.Table.from_pylist(list(rows)), mode="append", schema_mode="merge"
    )


def test_a_lake_that_is_not_there_yet_is_empty_and_is_not_made(tmp_path: Path) -> None:
    lake = DuckLake(tmp_path / "lake")
    for name in (*TABLES, *VIEWS):
        found = lake.table_rows(name)
        assert found == [] and found.columns, name
    assert not (tmp_path / "lake").exists()


def test_a_table_of_an_earlier_version_has_the_columns_of_this_one(tmp_path: Path) -> None:
    append(tmp_path, "changes", CHANGE)
    (row,) = DuckLake(tmp_path).rows("SELECT * FROM changes")
    assert row["policy"] is None and row["at"] == AT.replace(tzinfo=None)
    append(tmp_path, "changes", {**CHANGE, "policy": "default"})  # the files of before lack it
    found = DuckLake(tmp_path).rows("SELECT policy FROM changes ORDER BY policy")
    assert [row["policy"] for row in found] == [None, "default"] and "policy" in definition(
        "changes"
    ).rows.names


def test_all_is_as_of_one_moment_until_it_is_asked_anew(tmp_path: Path) -> None:
    append(tmp_path, "changes", CHANGE)
    lake = DuckLake(tmp_path)
    count = "SELECT count(*) AS n FROM changes"
    assert lake.rows(count) == [{"n": 1}]
    append(tmp_path, "changes", CHANGE)
    assert lake.rows(count) == [{"n": 1}]
    lake.refresh()
    assert lake.rows(count) == [{"n": 2}]


def test_asked_anew_a_table_is_opened_again_when_it_has_changed(tmp_path: Path) -> None:
    """By a commit, by being made again in the same place, or by being made; also for views of
    it."""
    lake = DuckLake(tmp_path)
    count = "SELECT count(*) AS n, (SELECT count(*) FROM open_incidents) AS open FROM changes"
    assert lake.rows(count) == [{"n": 0, "open": 0}]
    incident = {"flow": "east->west", "at": AT, "kind": "k", "incident_id": "i"}
    append(tmp_path, "changes", CHANGE)
    append(tmp_path, "incidents", incident)
    lake.refresh()
    assert lake.rows(count) == [{"n": 1, "open": 1}]
    before = lake.snapshot("changes")
    lake.refresh()
    assert lake.rows(count) == [{"n": 1, "open": 1}] and lake.snapshot("changes") is before
    append(tmp_path, "incidents", {**incident, "incident_id": "j"})
    lake.refresh()
    assert lake.rows(count) == [{"n": 1, "open": 2}] and lake.snapshot("changes") is before
    shutil.rmtree(tmp_path / "changes")
    append(tmp_path, "changes", CHANGE, CHANGE)
    lake.refresh()
    assert lake.rows(count) == [{"n": 2, "open": 2}]
    shutil.rmtree(tmp_path / "changes")
    lake.refresh()
    assert lake.rows(count) == [{"n": 0, "open": 2}]


def test_parameters_frames_and_limits(tmp_path: Path) -> None:
    append(tmp_path, "changes", CHANGE, {**CHANGE, "resource": "x'y"})
    lake = DuckLake(tmp_path)
    assert lake.rows(
        "SELECT kind FROM changes WHERE resource = :name", {"name": "x'y", "unused": 1}
    ) == [{"kind": "topic"}]
    frames: dict[str, Frame | str] = {
        "wanted": Frame("resource STRING, n BIGINT", [("größe", 7), ("nothing", None)]),
        "all": "SELECT resource FROM changes WHERE kind = :kind",
    }
    found = lake.rows(
        "SELECT n FROM {all} JOIN {wanted} AS wanted USING (resource)", {"kind": "topic"}, frames
    )
    assert found == [{"n": 7}]
    none = {"wanted": Frame("resource STRING", [])}
    assert lake.rows("SELECT resource FROM {wanted}", frames=none).columns == ("resource",)
    assert len(lake.rows("SELECT * FROM changes", limit=1)) == 1


def test_an_answer_that_was_cut_says_so(tmp_path: Path) -> None:
    append(tmp_path, "records", *({"topic": "a", "offset": offset} for offset in range(3)))
    lake = mirrorlake.open(path=tmp_path)
    for limit, count, truncated in ((2, 2, True), (3, 3, False), (4, 3, False), (None, 3, False)):
        found = lake.rows("SELECT offset FROM records", limit=limit)
        assert (len(found), found.truncated, found.columns) == (count, truncated, ("offset",))


def test_results_of_any_size_come_in_batches(tmp_path: Path) -> None:
    append(tmp_path, "changes", *(CHANGE for _ in range(10)))
    reader = DuckLake(tmp_path).arrow(
        "SELECT a.at, sum(1) AS n FROM changes AS a, changes AS b GROUP BY ALL"
    )
    table = reader.read_all()
    assert table.schema.field("at").type.tz and table.schema.field("n").type == pa.int64()
    assert table["n"].to_pylist() == [100]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    append(tmp_path, "changes", CHANGE)
    for text, query in (
        ("SELECT nothing FROM changes", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
    ):
        with pytest.raises(InputError, match=query):
            DuckLake(tmp_path).rows(text)
    append(tmp_path, "records", {"topic": "a"})
    log = tmp_path / "records" / "_delta_log" / f"{0:020d}.json"
    log.write_text(
        log.read_text().replace('"configuration":{}', '"configuration":{"mirrorlake.version":"99"}')
    )
    with pytest.raises(LakeError, match="newer mirrorlake"):
        DuckLake(tmp_path).table_rows("changes")


def test_a_name_that_is_mistyped_gets_the_one_that_was_meant(tmp_path: Path) -> None:
    lake = DuckLake(tmp_path)
    for query, said in (
        ("SELECT * FROM record", "^there is no table or view record; did you mean records\\?$"),
        ("SELECT * FROM xyz", "no table or view xyz; known are alerts, audits"),
        ("SELECT topik FROM records", '"topik" not found .* Candidate bindings: "topic"'),
    ):
        with pytest.raises(InputError, match=said):
            lake.rows(query)


def test_a_table_that_is_more_than_its_files_is_refused(tmp_path: Path) -> None:
    append(tmp_path, "changes", CHANGE)
    log = (
        tmp_path
        / "changes"
        / "_delta_log"
        / f"{DeltaTable(str(tmp_path / 'changes')).version() + 1:020d}.json"
    )
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    log.write_text(
        json.dumps({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    )
    with pytest.raises(LakeError, match="deletionVectors.*--engine spark"):
        DuckLake(tmp_path).table_rows("changes")


def test_an_engine_that_cannot(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no engine duck; choose spark or duckdb"):
        mirrorlake.open(path=tmp_path, engine="duck")
    with pytest.raises(InputError, match="--engine spark"):
        mirrorlake.open(catalog="main", schema="replication", engine="duckdb").rows("SELECT 1")
    with pytest.raises(LakeError, match="there is no lake in"):
        mirrorlake.open(path=tmp_path).rows("SELECT 1")
    append(tmp_path, "records", {"topic": "a"})
    with pytest.raises(InputError, match="^the query cannot be run by DuckDB .*--engine spark"):
        mirrorlake.open(path=tmp_path).rows("DROP TABLE records")


HEAVY = ("pyspark", "py4j", "delta", "pandas", "mlflow", "altair")
ASKED = {
    "translate": [
        "translate",
        "--flow",
        "east->west",
        "--topic",
        "orders",
        "--partition",
        "0",
        "--offset",
        "3",
    ],
    "status": ["status"],
    "divergence": ["divergence", "--flow", "east->west"],
    "resolve": ["resolve"],
    "sql": ["sql", "SELECT count(*) AS n FROM records"],
}
SCRIPT = """
import json, sys, typer
from pathlib import Path
from mirrorlake.cli import groups, inspect, resolve
from mirrorlake.cli.context import Context
from mirrorlake.errors import MirrorlakeError
app = typer.Typer()
app.callback()(lambda context: setattr(context, "obj", Context(Path("mirrorlake.yml"))))
app.callback.__self__.registered_callback.callback.__annotations__["context"] = typer.Context
for answer in (groups.divergence, resolve.resolve):
    app.command()(answer)
for answer in (inspect.status, inspect.translate, inspect.sql):
    app.command()(answer)
for command in json.loads(sys.argv[1]):
    try:
        app([*command, "--json"])
    except (MirrorlakeError, SystemExit) as end:
        print(f"ended with {end!r}", file=sys.stderr)
    print(flush=True, end="\\0")
    if "sqlglot" in sys.modules:
        print(f"{command[0]} has a translator", file=sys.stderr)
"""


def test_answers_import_no_spark(tmp_path: Path) -> None:
    """One process asks all of them: what the first one imported is there when the last one has
    answered."""
    (tmp_path / "mirrorlake.yml").write_text(
        "clusters: {east: {bootstrap_servers: '127.0.0.1:1'}, west: {bootstrap_servers: "
        "'127.0.0.1:1'}}\nlake: {path: .}\nflows: {east->west: {enabled: false}}\n",
        encoding="utf-8",
    )
    record = {
        "source_cluster": "east",
        "topic": "orders",
        "partition": 0,
        "offset": 3,
        "generation": 0,
    }
    append(tmp_path, "records", record)
    run = {
        "flow": "east->west",
        "topic": "orders",
        "partition": 0,
        "source_first": 3,
        "source_last": 3,
        "target_topic": "east.orders",
        "target_partition": 0,
        "target_first": 9,
        "target_last": 9,
        "record_count": 1,
        "segments": [{"source_first": 3, "stride": 1, "target_first": 9, "record_count": 1}],
    }
    append(tmp_path, "offset_map", run)
    script = (
        SCRIPT
        + f"\nprint('imported', [name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    asked = json.dumps(list(ASKED.values()))
    done = subprocess.run(
        [sys.executable, "-c", script, asked], cwd=tmp_path, capture_output=True, text=True
    )
    ends = [line.split()[-1] for line in done.stderr.splitlines() if "ended with" in line]
    assert "imported []" in done.stderr, done.stderr
    translated = [line.split()[0] for line in done.stderr.splitlines() if "translator" in line]
    assert translated == ["sql"]  # which is the only text that is not the package's own
    never_sampled = [f"SystemExit({int(name == 'divergence')})" for name in ASKED]
    assert ends == never_sampled, done.stderr
    answers = dict(zip(ASKED, map(json.loads, done.stdout.split("\0")), strict=False))
    assert answers.keys() == ASKED.keys()
    assert answers["translate"] == {
        "topic": "east.orders",
        "partition": 0,
        "offset": 9,
        "exact": True,
        "reason": None,
    }
    assert answers["sql"] == [{"n": 1}]


@pytest.mark.parametrize("folder", ["a lake", "läke", "50% *?#:'"])
def test_folders_are_called_what_people_like(tmp_path: Path, folder: str) -> None:
    tables = PathTables(tmp_path / folder)
    for at in range(3):
        tables.create("clusters")
        tables.append("clusters", rows_of("clusters", [{"alias": f"c{at}", "cluster_id": "x"}]))
    before = DuckLake(tmp_path / folder).table_rows("clusters")
    replaced = tables.compact("clusters")
    assert len(replaced) == 3 and all(path.exists() for path in replaced)
    assert {row["alias"] for row in DuckLake(tmp_path / folder).table_rows("clusters")} == {
        "c0",
        "c1",
        "c2",
    }
    assert len(before) == 3


@pytest.mark.parametrize("folder", ["lake[1]", "my%20lake"])
def test_folders_that_cannot_be_opened_are_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(
        LakeError, match="no folder of its path may have (\\[|%20) in its name; choose another"
    ):
        check_location(Location(path=str(tmp_path / folder)), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "names", [("open_incidents", "incidents"), ("incidents", "open_incidents")]
)
def test_a_table_that_a_view_of_the_same_query_reads_is_opened_once(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    """In whatever order a query's names come, which differs from process to process; an empty table
    above all."""
    lake = DuckLake(tmp_path)
    query = to_duckdb("SELECT * FROM open_incidents JOIN incidents USING (flow)")
    assert set(query.tables) == set(names)
    lake._make_known(query._replace(tables=names))  # type: ignore[arg-type]
    assert lake.rows(query.text) == []
