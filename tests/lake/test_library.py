"""The library over a lake of six hours: the questions that need no cluster; commands and notebooks
ask it."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import mirrorlake
from mirrorlake import Moves, OpenLake, Position, Rows, Status
from mirrorlake.cli.main import app
from mirrorlake.lake.lake import Lake
from mirrorlake.library.internals import Internals
from tests.support.sample_lake import FLOWS, REFUSED_AT

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
FLOW = "east->west"
#: The sample lake's target offsets of partition 0 are its source offsets and so much.
SHIFT = 40


@pytest.fixture(scope="module")
def place(history: Lake) -> Path:
    assert history.directory is not None
    return history.directory


@pytest.fixture(scope="module")
def lake(place: Path) -> OpenLake:
    """Opened as a reader does."""
    return mirrorlake.open(path=place)


@pytest.fixture(scope="module")
def file(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A topology file of that lake."""
    found = tmp_path_factory.mktemp("topology") / "mirrorlake.yml"
    clusters = {alias: {"bootstrap_servers": "127.0.0.1:1"} for alias in ("east", "west", "lab")}
    found.write_text(
        json.dumps(
            {"clusters": clusters, "lake": {"path": str(place)}, "flows": dict.fromkeys(FLOWS)}
        ),
        encoding="utf-8",
    )
    return found


@pytest.fixture(scope="module")
def middle(lake: OpenLake) -> int:
    """A source offset in the middle of the map of orders-0."""
    (row,) = lake.sql(
        "SELECT min(source_first) AS first, max(source_last) AS last FROM offset_map"
        " WHERE flow = :flow AND topic = 'orders' AND partition = 0",
        flow=FLOW,
    ).collect()
    return int(row["first"] + row["last"]) // 2


def command(file: Path, *arguments: str) -> Any:
    done = CliRunner().invoke(app, ["-c", str(file), *arguments, "--json"])
    assert done.stdout, done.output
    return json.loads(done.stdout)


def test_flows_and_their_tables(lake: OpenLake) -> None:
    assert list(lake.flows) == sorted(FLOWS) and len(lake.flows) == len(FLOWS)
    flow = lake.flows[FLOW]
    assert flow.enabled is None
    for frame in (
        flow.lag(),
        flow.latency(),
        flow.staged_only(),
        flow.never_staged(),
        lake.table("records"),
    ):
        assert isinstance(frame, DataFrame)
    assert {row["flow"] for row in flow.lag().select("flow").collect()} == {FLOW}
    assert {row["topic"] for row in flow.latency().select("topic").distinct().collect()} >= {
        "orders",
        "payments",
    }
    with pytest.raises(mirrorlake.TopologyError, match="there is no flow a->b"):
        lake.flows["a->b"]


def test_translation_both_ways(lake: OpenLake, middle: int) -> None:
    there = lake.translate(FLOW, "orders", 0, middle)
    assert there == Position("east.orders", 0, middle + SHIFT, True)
    assert lake.translate(FLOW, there.topic, 0, there.offset, reverse=True) == Position(
        "orders", 0, middle, True
    )
    asked = [("orders", 0, middle), ("orders", 0, middle + 1), ("nothing", 0, 1)]
    assert lake.translate_all(FLOW, asked) == {
        asked[0]: there,
        asked[1]: Position("east.orders", 0, middle + 1 + SHIFT, True),
    }
    with pytest.raises(mirrorlake.UnknownOffset, match="never seen partition 99"):
        lake.translate(FLOW, "orders", 99, 1)


def test_status_by_the_tables_alone(lake: OpenLake) -> None:
    status = lake.status()
    assert isinstance(status, Status) and not status.healthy
    assert [row["flow"] for row in status.flows] == sorted(FLOWS)
    assert REFUSED_AT in {(row["flow"], row["topic"], row["partition"]) for row in status.alerts}
    assert (
        "opened without its topology file" in status.unchecked[0]
        and "not healthy" in status._repr_html_()
    )


def test_incidents(lake: OpenLake) -> None:
    incidents = lake.incidents(kind="target_refused")
    assert isinstance(incidents, Rows) and [(row["flow"], row["topic"]) for row in incidents] == [
        REFUSED_AT[:2]
    ]
    assert (
        set(incidents[0]["choices"]) == {"retry", "skip", "stop", "park"}
        and "retry: " in incidents._repr_html_()
    )
    assert lake.incidents(flow="west->east") == []


def test_sql_that_cannot_be_run(lake: OpenLake) -> None:
    for wrong in ("SELECT nothing FROM records", "SELEC 1", "SELECT * FROM nowhere"):
        with pytest.raises(mirrorlake.InputError, match="^the query cannot be run: "):
            lake.sql(wrong)


def test_nothing_is_produced_from_a_reader(lake: OpenLake, file: Path, tmp_path: Path) -> None:
    with pytest.raises(mirrorlake.InputError, match="only the topology file says"):
        lake.groups(FLOW)
    reader = mirrorlake.open(file, read_only=True)
    with pytest.raises(mirrorlake.LakeError, match="opened read-only"):
        reader.internals.tables.check_for_writing()
    with pytest.raises(mirrorlake.LakeError, match="there is no lake in"):
        mirrorlake.open(path=tmp_path / "nowhere").table("records")
    assert not (tmp_path / "nowhere").exists()


def test_the_commands_answer_the_same(lake: OpenLake, file: Path, middle: int) -> None:
    place = ("--flow", FLOW, "--topic", "orders", "--partition", "0", "--offset", str(middle))
    assert command(file, "translate", *place) == lake.translate(FLOW, "orders", 0, middle).to_dict()
    assert command(file, "sql", "SELECT 1 AS one") == [{"one": 1}]
    listed = command(file, "resolve", "--kind", "target_refused")
    assert listed["choice"] is None
    assert json.dumps(listed["incidents"]) == json.dumps(
        lake.incidents(kind="target_refused"), default=str
    )
    lost = command(file, "divergence", "--flow", FLOW)
    assert set(lost) == {"flow", "staged_only", "never_staged", "sampled_at"}
    assert len(lost["never_staged"]) == lake.flows[FLOW].never_staged().count()
    upkeep = command(file, "maintain", "--dry-run")
    assert (
        list(upkeep) == ["dry_run", "settings", "records", "history", "thinned", "map", "tables"]
        and upkeep["dry_run"] is True
    )
    wrong = CliRunner().invoke(
        app, ["-c", str(file), "translate", *place[2:], "--flow", "east->wets"]
    )
    assert "did you mean" in str(wrong.exception)


@pytest.mark.parametrize(
    "name",
    [
        "01_quickstart",
        pytest.param("02_investigate_latency", marks=pytest.mark.slow),
        pytest.param("03_translate_offsets", marks=pytest.mark.slow),
        pytest.param("04_failover_drill", marks=pytest.mark.slow),
        "05_audit",
        pytest.param("07_trace", marks=pytest.mark.slow),
    ],
)
def test_notebooks_in_a_kernel_show_all_inline(
    name: str, file: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `%run` does it in Jupyter, whose widgets hold what the notebook gives: here, what the test
    gives. None of them asks for a session."""
    shown: list[dict[str, Any]] = []
    module, display = ModuleType("IPython"), ModuleType("IPython.display")
    module.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display = lambda what, raw: shown.append(what)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("mirrorlake.notebook.host.DEMO_LAKE", str(place))
    monkeypatch.setattr("mirrorlake.notebook.host.Notebook.topology_file", file)
    monkeypatch.setattr(OpenLake, "failover", rehearsed)
    monkeypatch.setattr(Internals, "spark", property(no_session))
    monkeypatch.setattr(sys, "path", list(sys.path))
    runpy.run_path(str(NOTEBOOKS / f"{name}.py"), run_name="__main__")
    kinds = [next(iter(bundle)) for bundle in shown]
    assert "text/html" in kinds and not (place.parent / "notebook-charts").exists()
    if name[:2] in ("01", "02", "03"):
        assert any("vegalite" in kind for kind in kinds)


def no_session(_known: Internals) -> SparkSession:
    raise AssertionError("a lake in a folder needs no session")


@pytest.mark.wide("test_notebooks_in_a_kernel_show_all_inline")
def test_a_notebook_of_a_lake_in_a_folder_imports_no_spark(place: Path) -> None:
    script = (
        "import runpy, sys; runpy.run_path(sys.argv[0], run_name='__main__'); "
        "sys.exit('pyspark' in sys.modules)"
    )
    words = [str(NOTEBOOKS / "01_quickstart.py"), f"lake={place}"]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv = {words!r}; {script}"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert FLOW in done.stdout


def rehearsed(_lake: OpenLake, flow: str, groups: object, *, dry_run: bool) -> Moves:
    row = {
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "position": 5,
        "done": "would move",
    }
    return Moves(flow, "failover", dry_run, True, None, Rows(), Rows([row]), ["look out"], [])
