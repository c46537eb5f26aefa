"""Every notebook runs: on a lake of known rows, as a workspace would run it, and on the demo's
lake."""

import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import mirrorlake
from mirrorlake import InputError, LakeError, Moves, OpenLake, ReplicationError
from mirrorlake.config.metrics import Tracking
from mirrorlake.library.internals import Internals
from mirrorlake.notebook import capacity, latency, open_notebook, translation
from mirrorlake.notebook.jupyter import write
from mirrorlake.tracking.store import open_store
from tests.support.histories import FLOW, History

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
Run = Callable[..., str]

#: What `move_groups` says in a rehearsal without clusters.
MOVES = {
    "flow": FLOW,
    "command": "failover",
    "dry_run": True,
    "complete": True,
    "drained": [],
    "origin_unreachable": None,
    "groups": [
        {
            "group": "billing",
            "topic": "orders",
            "partition": 0,
            "position": 5,
            "to_topic": "east.orders",
            "to_position": 105,
            "before": None,
            "done": "would move",
            "read_again_at_most": 0,
            "detail": None,
        }
    ],
    "warnings": ["group billing still has members on east: stop them"],
    "left": [],
}


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake where orders-1 is late in its second minute by batch 8, orders-2 has two records that
    are not mapped, and three that are not staged."""
    directory = tmp_path_factory.mktemp("notebooks")
    history = History(spark, directory)
    for partition in (0, 1, 2):
        mapped = 18 if partition == 2 else 20
        history.staged(95, "orders", partition, range(20))
        history.run(90, "orders", partition, 7, 0, 100, 10).run(
            28, "orders", partition, 8, 10, 111, mapped - 10
        )
        history.batch(90, "orders", partition, 7, 10, [5, 8, 8, 9, 9, 9])
        late = [5, 300, 40, 900, 7000 if partition == 1 else 100, 8000]
        history.batch(28, "orders", partition, 8, mapped - 10, late)
        end = 23 if partition == 2 else 20
        history.add(
            "positions",
            flow=FLOW,
            topic="orders",
            partition=partition,
            sampled_at=history.at(5),
            source_start=0,
            source_end=end,
            staged_end=20,
            produced_end=mapped,
            target_end=130,
            lag_records=end - mapped,
            lag_seconds=12.0 if partition == 2 else 0.0,
            target_topic="east.orders",
        )
    history.add(
        "checkpoints",
        flow=FLOW,
        group_id="billing",
        topic="orders",
        partition=0,
        source_position=5,
        target_topic="east.orders",
        target_position=105,
        checkpointed_at=history.at(9),
        synced=True,
    )
    history.add(
        "incidents",
        flow=FLOW,
        at=history.at(20),
        kind="target_refused",
        topic="orders",
        partition=2,
        first_offset=18,
        last_offset=19,
        detail="too large",
    )
    for first, last, verdict in ((0, 9, "proven"), (10, 19, "missing_at_target")):
        history.add(
            "audits",
            flow=FLOW,
            topic="orders",
            partition=0,
            first_offset=first,
            last_offset=last,
            source_count=10,
            stage_count=10,
            target_count=10,
            verdict=verdict,
            audited_at=history.at(3),
            generation=0,
            target_generation=0,
            excused=[("echo", 2)],
            byte_count=1000,
        )
    history.write()
    (directory / "mirrorlake.yml").write_text(
        "clusters: {east: {bootstrap_servers: '127.0.0.1:1'}, west: {bootstrap_servers: "
        "'127.0.0.1:2'}}\nlake: {path: ./lake}\nflows: {east->west: {topics: [orders]}}\n",
        encoding="utf-8",
    )
    return directory


@pytest.fixture(scope="module")
def recorded(place: Path) -> None:
    """Two runs in the lake's own store: 0.2 busy cores at rest, 20 CPU seconds for a million
    records."""
    store = open_store(Tracking(), place / "lake")
    for number, rates in enumerate(((0, 10_000, 20_000), (5_000, 40_000))):
        run = store.begin(
            f"run {number}", {"mirrorlake.command": "run"}, 1_790_000_000_000 + number
        )
        store.params(run, {"cores": "2"})
        for step, rate in enumerate(rates):
            figures = {"records_per_second": rate, "cpu_cores": 0.2 + rate * 20 / 1e6}
            store.metrics(run, figures, 1_790_000_000_000 + 30_000 * step, 30 * step)
        store.metrics(
            run, {"records": 1e6, "seconds": 100.0, "cpu_seconds": 40.0}, 1_790_000_100_000, 100
        )
        store.end(run, "FINISHED")


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a notebook as `python notebooks/<name>.py` does, in this process; returns what it shows.
    No session is asked for: the lake is a folder."""

    def no_session(_known: Internals) -> SparkSession:
        raise AssertionError("a lake in a folder needs none")

    def runs(name: str, *widgets: str) -> str:
        monkeypatch.setattr(Internals, "spark", property(no_session))
        path = FOLDER / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(path), f"lake={place / 'lake'}", *widgets])
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # so that it is put back
        monkeypatch.setattr(sys, "path", list(sys.path))
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return runs


def charts(place: Path, name: str) -> list[str]:
    return [
        path.read_text(encoding="utf-8")
        for path in sorted((place / "notebook-charts").glob(f"{name}-*.html"))
    ]


def test_01_quickstart(place: Path, run: Run) -> None:
    said = run("01_quickstart")
    assert "incident" in said and "target_refused" in said and "stopped" in said
    drawn = charts(place, "01_quickstart")
    assert len(drawn) == 2 and all(
        "vega" in text and "http://" not in text[:2000] for text in drawn
    )


def test_02_investigate_latency(place: Path, run: Run) -> None:
    said = run("02_investigate_latency")
    assert "the worst minute: " in said and "p99 7,000 ms, in orders-1, batch 8" in said
    assert "orders-1, batch 8: 10 records" in said and "They waited in the stage" in said
    assert len(charts(place, "02_investigate_latency")) == 2


def test_02_from_a_record_or_a_minute(place: Path, run: Run, spark: SparkSession) -> None:
    said = run("02_investigate_latency", "topic=orders", "partition=0", "offset=3")
    assert "the batch of offset 3: " in said and "p99 9 ms, in orders-0, batch 7" in said
    minute = said.split("the batch of offset 3: ")[1].split(",")[0]
    again = run("02_investigate_latency", f"minute={minute}", "partition=2")
    assert f"the minute that was asked for: {minute}" in again and "in orders-2, batch 7" in again
    with pytest.raises(InputError, match="the map has no batch of orders-2 offset 19"):
        run("02_investigate_latency", "topic=orders", "partition=2", "offset=19")
    with pytest.raises(InputError, match="minute holds noon"):
        run("02_investigate_latency", "minute=noon")


def test_03_translate_offsets(place: Path, run: Run) -> None:
    said = run("03_translate_offsets", "at=2020-01-01 00:00:00")
    assert "east.orders" in said and len(charts(place, "03_translate_offsets")) == 1
    assert "118" in run("03_translate_offsets", "partition=2", "offset=17")


def test_03_finds_the_records_of_a_key(place: Path, run: Run) -> None:
    said = run("03_translate_offsets", "topic=orders", "partition=1", "key=key-3")
    assert "value_bytes" in said and "103" in said, "its offset at the target"
    with pytest.raises(InputError, match="the stage has no record of key nobody in topic orders"):
        run("03_translate_offsets", "topic=orders", "key=nobody")


def test_08_command(place: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """One that does not end well fails the run of the page, as it fails the bundle's job."""
    query = "'SELECT flow FROM incidents' --json"
    said = run("08_command", "command=sql", f"arguments={query}")
    assert f'"{FLOW}"' in said and "exit code 0" in said
    with pytest.raises(ReplicationError, match="exit code 1, the replication needs attention"):
        run("08_command", "command=divergence", f"arguments=--flow {FLOW}")
    assert "only in the lake" in capsys.readouterr().out
    with pytest.raises(InputError, match="exit code 2, .* there is no flow west->east"):
        run("08_command", "command=plan", "arguments=--flow west->east")


def test_04_failover_drill(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def moved(
        _lake: OpenLake, flow: str, groups: tuple[str, ...] | None, *, dry_run: bool
    ) -> Moves:
        asked.append((flow, groups, dry_run))
        return Moves.from_document(MOVES)

    monkeypatch.setattr(OpenLake, "failover", moved)
    said = run("04_failover_drill")
    assert "would move" in said and "nothing was changed" in said and "still has members" in said
    run("04_failover_drill", "dry_run=no", "groups=billing, reports")
    assert asked == [(FLOW, None, True), (FLOW, ("billing", "reports"), False)]


def test_05_audit(run: Run) -> None:
    said = run("05_audit")
    assert f"flow {FLOW}: 2 partitions complete; 1 not on the target" in said
    assert "target_refused" in said and "22" in said, "the last offset that is not staged"
    assert "10 of 58 records at the target are proven by content, 1 ranges differ" in said
    assert "missing_at_target" in said and "echo" in said


def test_07_trace(place: Path, run: Run) -> None:
    said = run("07_trace", "topic=orders", "partition=1", "offset=3")
    assert "at the target: east.orders-1, offset 103" in said and "1.0 s" in said
    assert len(charts(place, "07_trace")) == 1
    assert "the target refused it: too large" in run("07_trace", "partition=2", "offset=18")
    assert "offset 19, east->west" in run("07_trace", "key=key-19")
    assert "offset 10, east->west" in run(
        "07_trace", "topic=east.orders", "side=target", "partition=1", "offset=111"
    )


def test_06_capacity(place: Path, run: Run, recorded: None) -> None:
    said = run("06_capacity", "records_per_second=100000", "utilisation=0.5")
    assert (
        "100,000 records/s, 50% busy: 4.4 cores by runs of this lake (20 CPU s per million)" in said
    )
    assert len(charts(place, "06_capacity")) == 1


def test_06_without_runs_says_what_to_do(run: Run, tmp_path: Path) -> None:
    said = run("06_capacity", f"tracking_uri=sqlite:///{tmp_path / 'none.db'}")
    assert "No run has been recorded" in said and "no run has figures over time yet" in said


#: Those that ask no cluster; `test_every_notebook_runs_unchanged_beside_the_demo` has all.
ALONE = [path for path in NOTEBOOKS if path.stem[:2] not in ("04", "08")]


@pytest.mark.parametrize("source", ALONE, ids=lambda path: path.stem)
def test_a_kernel_of_jupyter_runs_it_from_top_to_bottom(
    source: Path, place: Path, recorded: None, tmp_path: Path
) -> None:
    assert in_jupyter(tmp_path, source, f"lake={place / 'lake'}")


def in_jupyter(folder: Path, source: Path, *widgets: str) -> dict[str, int]:
    """Run a notebook as `jupyter nbconvert --execute` does, by a kernel of its own; returns how
    many tables and pictures it shows. An error in a cell ends it."""
    (path,) = write(folder, [source], dict(widget.split("=", 1) for widget in widgets))
    convert = ["nbconvert", "--execute", "--to", "notebook", "--inplace", str(path)]
    ended = subprocess.run(
        [sys.executable, "-m", "jupyter", *convert], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr[-5_000:]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    shown = [output for cell in cells for output in cell.get("outputs", ())]
    assert not [output for output in shown if output.get("name") == "stderr"]
    return Counter(kind for output in shown for kind in output.get("data", ()))


def test_a_wrong_widget_is_one_sentence(run: Run, place: Path) -> None:
    with pytest.raises(InputError, match="topci=orders sets no widget"):
        run("02_investigate_latency", "topci=orders")
    with pytest.raises(InputError, match="there is no flow west->east in .*known are: east->west"):
        run("01_quickstart", "flow=west->east")
    with pytest.raises(InputError, match="since and until are times"):
        run("02_investigate_latency", "since=half past nine")
    with pytest.raises(LakeError, match="there is no lake in .*mirrorlake demo"):
        run("01_quickstart", f"lake={place / 'nowhere'}")
    assert not (place / "nowhere").exists(), "looking makes nothing"


class FakeWidgets:
    """dbutils.widgets: keeps what it holds already."""

    def __init__(self, **values: str) -> None:
        self.values = values
        self.made: list[str] = []

    def text(self, name: str, default: str, label: str) -> None:
        self.made.append(name)
        self.values.setdefault(name, default)

    def get(self, name: str) -> str:
        return self.values[name]


@pytest.mark.parametrize(
    "name",
    ["01_quickstart", "02_investigate_latency", "03_translate_offsets", "05_audit", "07_trace"],
)
def test_a_workspace_uses_its_own_session_widgets_and_display(
    spark: SparkSession, place: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    shown: list[object] = []
    drawn: list[str] = []
    widgets = FakeWidgets(lake=str(place / "lake"))
    namespace = {
        "__name__": "__main__",
        "spark": spark,
        "dbutils": type("Utilities", (), {"widgets": widgets})(),
        "display": shown.append,
        "displayHTML": drawn.append,
    }
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    exec(compile(source, name, "exec"), namespace)
    assert widgets.made[0] == "lake" and "flow" in widgets.made
    assert any(isinstance(item, DataFrame) for item in shown)
    assert all(isinstance(item, DataFrame) for item in shown), (
        "a sentence goes to the cell's output"
    )
    assert all(item.startswith("<svg") and "<script" not in item for item in drawn), (
        "charts need no network"
    )
    assert bool(drawn) is (name != "05_audit")


def test_what_the_pages_say_is_right(spark: SparkSession, place: Path, recorded: None) -> None:
    nb = open_notebook(
        {},
        flow="",
        topic="",
        since="",
        until="",
        partition="",
        offset="",
        minute="",
        records_per_second="",
        utilisation="",
        tracking_uri="",
        experiment="",
    )
    nb._widgets["lake"] = str(place / "lake")
    spike = latency.find_spike(nb)
    assert (spike.topic, spike.partition, spike.batch_id, spike.p99_ms) == ("orders", 1, 8, 7000)
    assert sorted(latency.records(nb, spike)["offset"].to_pylist()) == list(range(10, 20))
    asked = [("orders", 0, position) for position in (0, 9, 10, 19)]
    there = {row["position"]: row for row in translation.there_and_back(nb, asked).to_pylist()}
    assert {position: row["other_position"] for position, row in there.items()} == {
        0: 100,
        9: 109,
        10: 111,
        19: 120,
    }
    assert all(row["back"] == position and row["exact"] for position, row in there.items())
    home = translation.back_and_there(nb, asked).to_pylist()
    assert {row["position"]: row["other_position"] for row in home} == {
        100: 0,
        109: 9,
        111: 10,
        120: 19,
    }
    (missing,) = nb.query("missing_since", flow=nb.flow).to_pylist()
    assert (missing["partition"], missing["first_offset"], missing["last_offset"]) == (2, 18, 19)
    assert (missing["incident"], missing["decision"]) == ("target_refused", "open")
    assert missing["missing_since"] is not None
    (unstaged,) = nb.packaged("queries", "never_staged", flow=nb.flow).to_pylist()
    assert (unstaged["partition"], unstaged["first_offset"], unstaged["last_offset"]) == (2, 20, 22)
    found = capacity.measured(nb)
    cost = found.costs[capacity.OWN]
    assert (cost.idle_cores, cost.cpu_seconds_per_million) == pytest.approx((0.2, 20))
    assert len(found.samples) == 5 and len(found.runs) == 2


@pytest.mark.slow
def test_every_notebook_runs_unchanged_beside_the_demo(tmp_path: Path) -> None:
    """As a person does it: `mirrorlake demo`, then each file with python, in the same folder."""
    environment = {**os.environ, "MIRRORLAKE_CORES": "2", "MIRRORLAKE_TRACKING": "on"}

    def done(*command: str) -> str:
        found = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    done("-m", "mirrorlake.cli.main", "demo", "--records", "5000")
    said = {path.stem: done(str(path)) for path in NOTEBOOKS}
    assert "orders" in said["01_quickstart"]
    assert "orders-" in said["02_investigate_latency"]
    assert "east.orders" in said["03_translate_offsets"]
    assert (
        "would move" in said["04_failover_drill"] and "orders-service" in said["04_failover_drill"]
    )
    assert "partitions complete, and no other" in said["05_audit"]
    known = (
        "cores by runs of this lake",
        "No run has been recorded from which a cost can be calculated",
    )
    assert any(one in said["06_capacity"] for one in known), (
        "runs of less than half a minute have no figures over time"
    )
    assert "it is at the target" in said["07_trace"]
    for name in ("04_failover_drill", "08_command"):  # which ask the clusters, too
        lake_of_demo = f"lake={tmp_path / 'mirrorlake-demo' / 'lake'}"
        in_jupyter(tmp_path / "jupyter", FOLDER / f"{name}.py", lake_of_demo)
    lake = mirrorlake.open(path=tmp_path / "mirrorlake-demo" / "lake")
    (read,) = lake.rows(
        "SELECT max(partition) AS partition FROM checkpoints WHERE group_id = 'shop'"
    )
    place = ("topic=orders", f"partition={read['partition']}", "offset=0")
    assert "group shop is past it at the source" in done(str(FOLDER / "07_trace.py"), *place)
