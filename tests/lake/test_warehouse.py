"""A SQL warehouse answers as Spark does. There is none here: Spark, which has its dialect, is
behind the connection."""

import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError, LakeError, TopologyError
from mirrorlake.lake.definitions import VIEWS, sql_text
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.translate import translate_all
from mirrorlake.lake.warehouse import WarehouseLake
from tests.support.both_engines import ARGS, ASKED, FRAMES, QUERIES, told
from tests.support.odd_lake import END, FLOW, TOPICS, odd_lake
from tests.support.warehouse import SparkConnection

#: Of now: each engine is asked at a moment of its own.
CHANGING = re.compile("age_seconds|lag_seconds|value|^noted_at$")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return odd_lake(spark, tmp_path_factory.mktemp("odd"))


@pytest.fixture
def warehouse(lake: Lake) -> Iterator[WarehouseLake]:
    yield WarehouseLake(lambda: SparkConnection(lake), (PySparkException,))


@pytest.fixture(scope="module")
def duck(lake: Lake) -> DuckLake:
    """Who is compared with: it answers as Spark does (tests/lake/test_both_engines.py), and
    sooner."""
    assert lake.directory is not None
    return DuckLake(lake.directory)


def still(rows: list[dict[str, Any]]) -> list[str]:
    """Rows without what goes by the time at which they are asked for: a flow gone long is so since
    some hours ago."""
    return told(
        [
            {
                name: value
                for name, value in row.items()
                if not CHANGING.search(name)
                and not (name == "since" and row.get("alert") == "not_running")
            }
            for row in rows
        ]
    )


def cases() -> Iterator[Any]:
    """The queries: slow are those that are given no rows, whose text a warehouse gets as Spark
    does."""
    for kind, name in QUERIES:
        if kind == "queries":
            with_rows = any(f"{{{key}}}" in sql_text(kind, name) for key in FRAMES)
            yield pytest.param(name, marks=() if with_rows else pytest.mark.slow)


@pytest.mark.wide("lake/test_both_engines.py::test_queries", "test_views")
@pytest.mark.parametrize("name", cases())
def test_queries(duck: DuckLake, warehouse: WarehouseLake, name: str) -> None:
    ours, theirs = warehouse.query_rows(name, FRAMES, **ARGS), duck.query_rows(name, FRAMES, **ARGS)
    assert ours.columns == theirs.columns and still(ours) == still(theirs)


#: A view is asked for by the same text as each other one; this one stands for views of views.
USUAL_VIEW = "offset_translation"


@pytest.mark.parametrize(
    "view",
    [
        USUAL_VIEW,
        *(pytest.param(view, marks=pytest.mark.slow) for view in VIEWS if view != USUAL_VIEW),
    ],
)
def test_views(duck: DuckLake, warehouse: WarehouseLake, view: str) -> None:
    ours, theirs = warehouse.table_rows(view), duck.table_rows(view)
    assert ours.columns == theirs.columns and still(ours) == still(theirs)


@pytest.mark.wide("lake/test_both_engines.py::test_translations")
def test_positions_translate(duck: DuckLake, warehouse: WarehouseLake) -> None:
    assert translate_all(warehouse, FLOW, ASKED) == translate_all(duck, FLOW, ASKED) != {}


def test_what_is_staged(duck: DuckLake, warehouse: WarehouseLake) -> None:
    with StageFiles(warehouse).reading() as ours, StageFiles(duck).reading() as theirs:
        for topic in TOPICS:
            assert ours.ends("east") == theirs.ends("east") and topic in {
                key[0] for key in ours.ends("east")
            }


def test_large_results_come_in_parts(warehouse: WarehouseLake) -> None:
    since = END - timedelta(days=1)
    parts = list(
        warehouse.arrow(
            "SELECT offset FROM records WHERE landed_at > :since", {"since": since, "other": 1}
        )
    )
    assert len(parts) > 2 and sum(part.num_rows for part in parts) > 7
    assert len(warehouse.rows("SELECT * FROM records -- all of them", limit=3)) == 3


def test_a_query_that_cannot_be_run(warehouse: WarehouseLake) -> None:
    with pytest.raises(InputError, match="TABLE_OR_VIEW_NOT_FOUND"):
        warehouse.rows("SELECT * FROM nowhere")


def test_a_warehouse_that_is_not_there(lake: Lake) -> None:
    def refused() -> SparkConnection:
        raise PySparkException("401: no such token\nand more")

    with pytest.raises(
        LakeError, match=r"cannot be reached \(401: no such token\); check lake.warehouse"
    ):
        WarehouseLake(refused, (PySparkException,)).rows("SELECT 1")


FILE = """
clusters: {{east: {{bootstrap_servers: '127.0.0.1:1'}}, west: {{bootstrap_servers: '127.0.0.1:1'}}}}
lake:
  {place}
  warehouse:
    {{server_hostname: w.example, http_path: /sql/1.0/warehouses/1, access_token: '${{env:TOKEN}}'}}
flows: {{east->west: {{topics: [orders]}}}}
"""


def test_the_topology_file_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sql", None)  # as where the extra is not installed
    file = tmp_path / "mirrorlake.yml"
    file.write_text(FILE.format(place="catalog: main\n  schema: replication"), encoding="utf-8")
    assert "TOKEN" not in repr(load_topology(file).lake)
    with pytest.raises(
        InputError, match=r"--engine spark does without it.*pip install 'mirrorlake\[databricks\]'"
    ):
        mirrorlake.open(file).status()
    file.write_text(FILE.format(place="path: ./lake"), encoding="utf-8")
    with pytest.raises(TopologyError, match="a warehouse reads a catalog and schema, and no path"):
        load_topology(file)
