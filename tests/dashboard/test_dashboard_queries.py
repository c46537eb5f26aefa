"""Each data set of the dashboard on a local lake: with history, without, and with more rows than
the page takes."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.dashboard.data import bounded, read_data
from mirrorlake.dashboard.model import filter_targets, load_dashboard, plan_fields
from mirrorlake.dashboard.parts import Dataset
from mirrorlake.errors import LakeError
from mirrorlake.lake.lake import Lake
from tests.support.sample_lake import FLOWS, empty_lake

pytestmark = pytest.mark.slow

DASHBOARD = load_dashboard()
TOPOLOGY = """
clusters:
  east: {bootstrap_servers: "127.0.0.1:1"}
  west: {bootstrap_servers: "127.0.0.1:2"}
lake: {path: lake}
flows:
  east->west: {topics: [".*"]}
"""


def rows_of(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = data["datasets"][name]
    return [
        dict(zip((column["name"] for column in found["columns"]), row, strict=True))
        for row in found["rows"]
    ]


def test_every_dataset_has_rows_and_the_columns_that_widgets_ask_for(
    history_data: dict[str, Any],
) -> None:
    columns = {
        name: {item["name"] for item in found["columns"]}
        for name, found in history_data["datasets"].items()
    }
    assert [name for name, found in history_data["datasets"].items() if not found["rows"]] == []
    assert not any(found["cut"] for found in history_data["datasets"].values())
    for widget in DASHBOARD.widgets():
        for query in widget.queries:
            asked = {plan.column for plan in plan_fields(widget, query.query).values()} - {"*"}
            assert asked <= columns[query.query.datasetName], widget.name
            assert {order.expression.strip("`") for order in query.query.orders} <= columns[
                query.query.datasetName
            ]


def test_filters_act_on_every_dataset_that_has_their_column(history_data: dict[str, Any]) -> None:
    targets = {widget.name: dict(filter_targets(widget)) for widget in DASHBOARD.widgets()}
    columns = {
        name: {item["name"] for item in found["columns"]}
        for name, found in history_data["datasets"].items()
    }
    for column in ("flow", "topic"):
        having = {name for name, names in columns.items() if column in names}
        assert set(targets[f"filter_{column}"]) == having
        assert set(targets[f"filter_{column}"].values()) == {column}


def test_an_empty_lake_gives_empty_datasets(spark: SparkSession, tmp_path: Path) -> None:
    data = read_data(empty_lake(spark, tmp_path), DASHBOARD)
    assert {name: found["rows"] for name, found in data["datasets"].items()} == {
        dataset.name: [] for dataset in DASHBOARD.datasets
    }


def test_values_are_those_of_the_tables(history: Lake, history_data: dict[str, Any]) -> None:
    def one(query: str) -> Any:
        return history.sql(query).collect()[0][0]

    assert {row["flow"] for row in rows_of(history_data, "ds_flows")} == set(FLOWS)
    assert sum(row["record_count"] for row in rows_of(history_data, "ds_throughput")) == one(
        "SELECT sum(record_count) FROM latency"
    )
    lag = {
        (row["flow"], row["topic"], row["partition"]): row["lag_records"]
        for row in rows_of(history_data, "ds_lag")
    }
    assert max(lag, key=lambda key: lag[key]) == ("east->lab", "clicks", 5)
    newest = max(row["minute"] for row in rows_of(history_data, "ds_latency"))
    assert newest == one("SELECT unix_millis(max(minute)) FROM replication_latency")
    states = {row["flow"]: row["state"] for row in rows_of(history_data, "ds_flows")}
    assert states["east->lab"] == "needs a decision"


def test_groups_that_are_held_would_read_again_what_is_not_mirrored(
    history_data: dict[str, Any],
) -> None:
    groups = {row["group_id"]: row for row in rows_of(history_data, "ds_groups")}
    assert "old-reporting" not in groups, "it left"
    exactly = {name for name, row in groups.items() if row["fails_over"] == "exactly"}
    assert exactly == {"billing", "warehouse", "fraud-scoring", "stock-sync"}
    assert (groups["funnel"]["positions"], groups["funnel"]["exact_positions"]) == (14, 13)
    (refused,) = [
        row
        for row in rows_of(history_data, "ds_lag")
        if (row["topic"], row["partition"]) == ("clicks", 5)
    ]
    held_back = [
        row for row in rows_of(history_data, "ds_group_positions") if row["state"] == "held back"
    ]
    assert {(row["topic"], row["partition"]) for row in held_back} == {("clicks", 5)}
    assert {row["read_again"] for row in held_back} == {
        held_back[0]["source_position"] - refused["produced_end"]
    }
    assert groups["funnel"]["read_again"] == held_back[0]["read_again"] > 100


def test_too_many_rows_are_cut_to_the_newest_and_it_is_said(
    history: Lake, history_data: dict[str, Any]
) -> None:
    few = DASHBOARD.model_copy(
        update={"datasets": tuple(d for d in DASHBOARD.datasets if d.name == "ds_latency")}
    )
    cut = read_data(history, few, rows=50)
    assert cut["datasets"]["ds_latency"]["cut"] and len(cut["datasets"]["ds_latency"]["rows"]) == 50
    every = sorted((row["minute"] for row in rows_of(history_data, "ds_latency")), reverse=True)
    assert [row["minute"] for row in rows_of(cut, "ds_latency")] == every[:50]


@pytest.mark.parametrize(
    "query",
    [
        "WITH x AS (SELECT 1 AS a) INSERT INTO clusters SELECT 'a', 'b', NULL, NULL FROM x",
        "SELECT 1) UNION ALL DELETE FROM incidents WHERE (true",
        "SELECT * FROM no_such_table",
    ],
)
def test_a_statement_that_is_no_query_is_refused_and_does_nothing(
    history: Lake, query: str
) -> None:
    wrong = Dataset(name="ds_wrong", displayName="Wrong", queryLines=(query,))
    before = history.version_of("clusters"), history.version_of("incidents")
    with pytest.raises(LakeError, match="dataset ds_wrong of the dashboard cannot be read"):
        read_data(history, DASHBOARD.model_copy(update={"datasets": (wrong,)}))
    assert (history.version_of("clusters"), history.version_of("incidents")) == before


def test_a_comment_at_the_end_hides_nothing() -> None:
    dataset = Dataset(name="ds", displayName="", queryLines=("SELECT 1 AS a -- one",))
    assert bounded(dataset, "a", 5).splitlines() == [
        "SELECT * FROM (",
        "SELECT 1 AS a -- one",
        ")",
        "ORDER BY `a` DESC",
        "LIMIT 6",
    ]


def test_the_command_writes_one_file(spark: SparkSession, tmp_path: Path) -> None:
    topology = tmp_path / "mirrorlake.yml"
    topology.write_text(TOPOLOGY)
    page = tmp_path / "page.html"
    found = CliRunner().invoke(app, ["-c", str(topology), "dashboard", "--html", str(page)])
    assert found.exit_code == 0, found.output
    assert '"datasets":{"ds_flows"' in page.read_text(encoding="utf-8")
    assert json.dumps(str(tmp_path / "lake")) in page.read_text(encoding="utf-8")


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    topology = tmp_path / "mirrorlake.yml"
    topology.write_text(TOPOLOGY)
    found = CliRunner().invoke(
        app, ["-c", str(topology), "dashboard", "--html", str(tmp_path / "no" / "page.html")]
    )
    assert "there is no directory" in str(found.exception)
