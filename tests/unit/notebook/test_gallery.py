"""The pictures of docs/gallery.md: what notebooks show of a made-up lake. With
MIRRORLAKE_SCREENSHOTS=docs they are made again (`make screenshots`)."""

import os
import re
import runpy
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path

import altair as alt
import pyarrow as pa
import pytest
from rich.console import Console
from rich.terminal_theme import MONOKAI

import mirrorlake
from mirrorlake.notebook import host
from mirrorlake.notebook.inline import Shown, picture
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
#: below 0 is one of its tables: -1 the first, -2 the second, as far as a picture goes.
PICTURES: Mapping[str, Mapping[str, int]] = {
    "01_quickstart": {"throughput": 0, "lag": 1},
    "02_investigate_latency": {"hour": 0, "spike": 1},
    "03_translate_offsets": {"map": 0},
    "05_audit": {"proof": -2},
}
#: Widgets that are not left as they are: the hours with a spike of load.
WIDGETS = {
    "02_investigate_latency": ("since=2026-11-21 21:20:00", "until=2026-11-21 22:40:00"),
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hours of history."""
    place = tmp_path_factory.mktemp("gallery")
    (place / "mirrorlake.yml").write_text(FILE, encoding="utf-8")
    fill(mirrorlake.open(place / "mirrorlake.yml").internals.tables, 6, END)
    return place / "lake"


@pytest.mark.parametrize("name", PICTURES)
def test_screenshots(
    lake: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Shown] = []
    monkeypatch.setattr(host.Notebook, "display", lambda _self, *what: shown.extend(what))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # so that it is put back
    monkeypatch.setattr(sys, "path", list(sys.path))
    source = ROOT / "notebooks" / f"{name}.py"
    monkeypatch.setattr(
        sys, "argv", [str(source), f"lake={lake}", "flow=east->west", *WIDGETS.get(name, ())]
    )
    runpy.run_path(str(source), run_name="__main__")
    charts = [what for what in shown if isinstance(what, alt.TopLevelMixin)]
    tables = [what for what in shown if isinstance(what, pa.Table)]
    place = Path(os.environ.get("MIRRORLAKE_SCREENSHOTS", tmp_path))
    for called, number in PICTURES[name].items():
        drawn = as_terminal(tables[-1 - number], name) if number < 0 else picture(charts[number])
        assert "url(http" not in drawn and "@font-face" not in drawn
        (place / picture_of(name, called)).write_text(drawn, encoding="utf-8")


def picture_of(name: str, called: str) -> str:
    """The file of a picture."""
    return f"notebook-{name[:2]}-{called}.svg"


def as_terminal(table: pa.Table, title: str) -> str:
    """A table as a terminal shows it, as an SVG that fetches no font."""
    console = Console(record=True, width=150, file=StringIO(), markup=False, highlight=False)
    console.print(host._table(table.slice(0, 8)))
    return re.sub(r"@font-face\s*\{[^}]*\}\s*", "", console.export_svg(title=title, theme=MONOKAI))


def test_the_page_shows_each_picture_once() -> None:
    linked = re.findall(r"!\[[^]]+\]\((notebook-[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    made = [picture_of(name, called) for name, called in pictures()]
    assert linked == made
    assert all((PAGE.parent / name).stat().st_size < 300_000 for name in linked)
    assert sorted(path.name for path in PAGE.parent.glob("notebook-*.svg")) == sorted(made)


def pictures() -> list[tuple[str, str]]:
    return [(name, called) for name, which in PICTURES.items() for called in which]
