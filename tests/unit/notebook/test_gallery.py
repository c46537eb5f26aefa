"""The pictures of docs/gallery.md: what notebooks show of a made-up lake. With
MIRRORLAKE_SCREENSHOTS=docs they are made again (`make screenshots`)."""

import os
import re
import runpy
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from io import StringIO
from pathlib import Path

import altair as alt
import pyarrow as pa
import pytest
from rich.console import Console
from rich.table import Table
from rich.terminal_theme import MONOKAI

from mirrorlake import Moves, OpenLake
from mirrorlake.config.metrics import Tracking
from mirrorlake.lake.lake import Lake
from mirrorlake.notebook import host
from mirrorlake.notebook.inline import Shown, picture
from mirrorlake.tracking.store import open_store
from tests.support.lake_rows import append, no_session, opened, run_row, staged
from tests.support.sample_lake import fill

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "gallery.md"
END = datetime(2026, 11, 21, 23, 50, tzinfo=timezone.utc)
FILE = """
clusters: {east: {bootstrap_servers: "a:1"}, west: {bootstrap_servers: "b:1"}}
lake: {path: ./lake}
flows: {"east->west": {topics: [orders]}}
"""
#: Which charts of a notebook are shown, by the picture's name and the chart's number; a number
#: below 0 is one of its tables: -1 the first, -2 the second, as far as a picture goes; SAID is what
#: it says in sentences, PRINTED what a command prints.
SAID, PRINTED = 100, 101
PICTURES: Mapping[str, Mapping[str, int]] = {
    "01_quickstart": {"throughput": 0, "lag": 1},
    "02_investigate_latency": {"hour": 0, "spike": 1},
    "03_translate_offsets": {"map": 0},
    "04_failover_drill": {"groups": -1},
    "05_audit": {"proof": -2},
    "06_capacity": {"cores": 0},
    "07_trace": {"life": SAID, "around": 0},
    "08_command": {"incidents": PRINTED},
}
#: What `make test` draws: of each kind of picture one.
FEW = {"01_quickstart", "04_failover_drill", "07_trace", "08_command"}
#: Widgets that are not left as they are: the hours with a spike of load; a record of the topic
#: that has records; a query.
QUERY = "'SELECT at, flow, kind, resolution FROM incidents ORDER BY at'"
WIDGETS = {
    "02_investigate_latency": ("since=2026-11-21 21:20:00", "until=2026-11-21 22:40:00"),
    "06_capacity": ("records_per_second=30000",),
    "07_trace": ("topic=parcels", "partition=0", "offset=160"),
    "08_command": ("command=sql", f"arguments={QUERY}"),
}
#: Notebooks that do not look at `east->west`; two have no widget `flow`.
FLOWS = {"06_capacity": (), "07_trace": ("flow=east->lab",), "08_command": ()}
#: What a rehearsal of groups says where no cluster is.
NO_MOVES = {"flow": "east->west", "command": "failover", "dry_run": True, "complete": True}
NO_MOVES |= {"drained": [], "origin_unreachable": None, "groups": [], "warnings": [], "left": []}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hours of history."""
    place = tmp_path_factory.mktemp("gallery")
    (place / "mirrorlake.yml").write_text(FILE, encoding="utf-8")
    tables = opened(no_session, place / "mirrorlake.yml")[0]
    fill(tables, 6, END)
    parcels(tables)
    recorded_runs(place / "lake")
    return place / "lake"


def parcels(lake: Lake) -> None:
    """A topic with records: one each 40 ms, a batch each second, of which one was late by 3 s."""
    begin = END - timedelta(minutes=10)
    for batch in range(12):
        landed = begin + timedelta(seconds=batch + 1.2)
        produced = landed + timedelta(seconds=3.4 if batch == 6 else 0.4)
        number = {"topic": "parcels", "batch_id": int(landed.timestamp() * 1000)}
        append(
            lake,
            "records",
            [
                row | {"timestamp": begin + timedelta(milliseconds=40 * row["offset"])}
                for row in staged(range(25 * batch, 25 * batch + 25), landed_at=landed, **number)
            ],
        )
        more = {
            **number,
            "flow": "east->lab",
            "target_topic": "east.parcels",
            "produced_at": produced,
        }
        append(lake, "offset_map", [run_row(25 * batch, 25 * batch + 24, **more)])


def recorded_runs(place: Path) -> None:
    """Three runs: 0.2 busy cores at rest, 20 CPU seconds for a million records."""
    store = open_store(Tracking(), place)
    for number, rates in enumerate(((0, 10_000, 20_000), (5_000, 40_000), (2_000, 60_000)), 1):
        at = int(END.timestamp() * 1000) + number
        run = store.begin(f"run {number}", {"mirrorlake.command": "run"}, at)
        store.params(run, {"cores": "2"})
        for step, rate in enumerate(rates):
            figures = {"records_per_second": rate, "cpu_cores": 0.2 + rate * 20 / 1e6}
            store.metrics(run, figures, at + 30_000 * step, 30 * step)
        totals = {"records": 1e6, "seconds": 100.0, "cpu_seconds": 40.0}
        store.metrics(run, totals, at + 100_000, 100)
        store.end(run, "FINISHED")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=()
            if name in FEW
            else pytest.mark.wide(
                "test_screenshots",
                "lake/test_library.py::test_notebooks_in_a_kernel_show_all_inline",
            ),
        )
        for name in PICTURES
    ],
)
def test_screenshots(
    lake: Path,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[Shown] = []
    monkeypatch.setattr(host.Notebook, "display", lambda _self, *what: shown.extend(what))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # so that it is put back
    monkeypatch.setattr(sys, "path", list(sys.path))
    source = ROOT / "notebooks" / f"{name}.py"
    monkeypatch.setattr(OpenLake, "failover", lambda *_args, **_more: Moves.from_document(NO_MOVES))
    flow = FLOWS.get(name, ("flow=east->west",))
    monkeypatch.setattr(sys, "argv", [str(source), f"lake={lake}", *flow, *WIDGETS.get(name, ())])
    runpy.run_path(str(source), run_name="__main__")
    charts = [what for what in shown if isinstance(what, alt.TopLevelMixin)]
    tables = [what for what in shown if isinstance(what, pa.Table)]
    place = Path(os.environ.get("MIRRORLAKE_SCREENSHOTS", tmp_path))
    sentences = "\n".join(what for what in shown if isinstance(what, str))
    for called, number in PICTURES[name].items():
        if number >= SAID:
            drawn = as_terminal(sentences if number == SAID else capsys.readouterr().out, name)
        elif number < 0:
            drawn = as_terminal(host._table(tables[-1 - number].slice(0, 8)), name)
        else:
            drawn = picture(charts[number])
        assert "url(http" not in drawn and "@font-face" not in drawn
        (place / picture_of(name, called)).write_text(drawn, encoding="utf-8")


def picture_of(name: str, called: str) -> str:
    """The file of a picture."""
    return f"notebook-{name[:2]}-{called}.svg"


def as_terminal(shown: Table | str, title: str) -> str:
    """What a terminal shows, as an SVG that fetches no font."""
    console = Console(record=True, width=150, file=StringIO(), markup=False, highlight=False)
    console.print(shown)
    return re.sub(r"@font-face\s*\{[^}]*\}\s*", "", console.export_svg(title=title, theme=MONOKAI))


def test_the_page_shows_each_picture_once() -> None:
    linked = re.findall(r"!\[[^]]+\]\((notebook-[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    made = [picture_of(name, called) for name, called in pictures()]
    assert linked == made
    assert all((PAGE.parent / name).stat().st_size < 300_000 for name in linked)
    assert sorted(path.name for path in PAGE.parent.glob("notebook-*.svg")) == sorted(made)


def pictures() -> list[tuple[str, str]]:
    return [(name, called) for name, which in PICTURES.items() for called in which]
