"""In a kernel of Jupyter or VS Code, tables and charts stand below the cell; in a terminal they do not."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import altair as alt
import pytest

from mirrorlake.library.internals import in_kernel
from mirrorlake.notebook import host, inline, open_notebook

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
    """A table of some rows."""

    columns = ("name", "size")

    def __init__(self, size: int) -> None:
        self.size = size

    def limit(self, size: int) -> "FakeFrame":
        return FakeFrame(min(size, self.size))

    def collect(self) -> list[Any]:
        return [
            SimpleNamespace(asDict=lambda number=number: {"name": "<a>", "size": number}) for number in range(self.size)
        ]


def test_what_is_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_kernel()
    ipython(monkeypatch, SimpleNamespace())
    assert not in_kernel(), "IPython in a terminal shows text only"
    ipython(monkeypatch, None)
    assert not in_kernel(), "imported, and not running"
    ipython(monkeypatch, SimpleNamespace(kernel=object()))
    assert in_kernel()


def test_all_is_shown_inline(shown: Shown, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(inline, "DataFrame", FakeFrame)
    monkeypatch.chdir(tmp_path)
    nb = open_notebook({"__name__": "__main__"}, lake="./lake", flow="east->west")
    assert (nb.widget("flow"), nb.directory) == ("east->west", tmp_path / "lake")
    chart = alt.Chart(alt.InlineData(values=[{"a": 1, "b": 2}]), mark="bar", title="sizes").encode(x="a:Q", y="b:Q")
    nb.display("a sentence", FakeFrame(2), FakeFrame(31), chart)  # type: ignore[arg-type]
    sentence, table, long, drawn = (bundle for bundle, raw in shown if raw)
    assert sentence == {"text/plain": "a sentence"}
    assert "<th>name</th><th>size</th>" in table["text/html"] and "&lt;a&gt;" in table["text/html"]
    assert long["text/html"].count("<tr>") == 31 and "the first 30 rows" in long["text/html"]
    assert next(iter(drawn)).startswith("application/vnd.vegalite.v") and "sizes" in drawn["image/svg+xml"]
    assert drawn["image/svg+xml"].startswith("<svg")
    assert not (tmp_path / "notebook-charts").exists()


def test_a_script_is_no_kernel() -> None:
    assert isinstance(open_notebook({})._host, host.Laptop)


def test_places() -> None:
    assert host.place_of("main.replication") == {"catalog": "main", "schema": "replication"}
    assert host.place_of("./lake") == {"path": "./lake"}
