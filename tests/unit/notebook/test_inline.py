"""In a kernel of Jupyter or VS Code, tables and charts stand below the cell; in a terminal they do
not."""

import sys
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import altair as alt
import pyarrow as pa
import pytest

from mirrorlake.library.internals import in_kernel
from mirrorlake.notebook import host, open_notebook

Shown = list[tuple[dict[str, Any], bool]]


def ipython(monkeypatch: pytest.MonkeyPatch, shell: object) -> Shown:
    """As a process that IPython runs in has it."""
    shown: Shown = []
    module, display = ModuleType("IPython"), ModuleType("IPython.display")
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    display.display = lambda what, raw: shown.append((what, raw))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    return ipython(monkeypatch, SimpleNamespace(kernel=object()))


class FakeFrame:
    """A DataFrame of Spark, of some rows."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def limit(self, size: int) -> "FakeFrame":
        return FakeFrame(self.rows.slice(0, size))

    def toArrow(self) -> pa.Table:
        return self.rows


def rows(size: int) -> pa.Table:
    at = datetime(2026, 11, 21, 23, 47, tzinfo=timezone.utc)
    times = pa.array([at] * size, pa.timestamp("us", tz="UTC"))
    return pa.table({"name": ["<a>"] * size, "size": list(range(size)), "at": times})


def test_what_is_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_kernel()
    ipython(monkeypatch, SimpleNamespace())
    assert not in_kernel(), "IPython in a terminal shows text only"
    ipython(monkeypatch, None)
    assert not in_kernel(), "imported, and not running"
    ipython(monkeypatch, SimpleNamespace(kernel=object()))
    assert in_kernel()


def test_all_is_shown_inline(shown: Shown, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    nb = open_notebook({"__name__": "__main__"}, lake="./lake", flow="east->west")
    assert (nb.widget("flow"), nb.directory) == ("east->west", tmp_path / "lake")
    chart = alt.Chart(alt.InlineData(values=[{"a": 1, "b": 2}]), mark="bar", title="sizes").encode(
        x="a:Q", y="b:Q"
    )
    nb.display("a sentence", rows(2), FakeFrame(rows(32)), chart)  # type: ignore[arg-type]
    sentence, table, long, drawn = (bundle for bundle, raw in shown if raw)
    assert sentence == {"text/plain": "a sentence"}
    assert "<th>name</th><th>size</th>" in table["text/html"] and "&lt;a&gt;" in table["text/html"]
    assert "<td>2026-11-21 23:47:00.000</td>" in table["text/html"], "times are in UTC"
    assert long["text/html"].count("<tr>") == 31 and "the first 30 rows" in long["text/html"]
    assert (
        next(iter(drawn)).startswith("application/vnd.vegalite.v")
        and "sizes" in drawn["image/svg+xml"]
    )
    assert drawn["image/svg+xml"].startswith("<svg")
    assert not (tmp_path / "notebook-charts").exists()


def test_a_script_is_no_kernel() -> None:
    assert isinstance(open_notebook({})._host, host.Laptop)


def test_places() -> None:
    assert host.place_of("main.replication") == {"catalog": "main", "schema": "replication"}
    assert host.place_of("./lake") == {"path": "./lake"}
