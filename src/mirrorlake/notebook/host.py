"""A notebook's environment: that of a Databricks workspace, or small stand-ins elsewhere."""

import sys
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import altair as alt
import pyarrow as pa
from rich.table import Table

import mirrorlake
from mirrorlake.errors import InputError, MirrorlakeError
from mirrorlake.library.html import cell_text
from mirrorlake.library.internals import in_kernel
from mirrorlake.notebook.inline import SHOWN_ROWS, Shown, bundle_of, picture, plain_rows, rows_of
from mirrorlake.terminal import plain_console, plain_table

if TYPE_CHECKING:  # a lake in a folder is read without Spark
    from pyspark.sql import DataFrame, SparkSession

#: The default lakes: the demo's on a laptop, and the bundle's default schema in a workspace.
DEMO_LAKE, WORKSPACE_LAKE = "./mirrorlake-demo/lake", "main.replication"
_WIDTH = 180


class Host(Protocol):
    """The environment that has widgets and displays results."""

    @property
    def spark(self) -> "SparkSession | None":
        """The existing session; if None, the lake makes one when needed."""

    def widgets(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """Make widgets with these defaults and return their values."""

    def show(self, what: Shown, charts: Path) -> None:
        """Show a table, a chart or a sentence; `charts` is a folder for charts that need one."""


class Workspace:
    """Databricks: the session, `dbutils.widgets`, `display` and `displayHTML` of a notebook."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._spark: SparkSession = namespace["spark"]
        self._widgets = namespace["dbutils"].widgets
        self._display = namespace["display"]
        self._html = namespace["displayHTML"]

    @property
    def spark(self) -> "SparkSession":
        """The workspace's session."""
        return self._spark

    def widgets(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """Text widgets above the notebook; existing values stay."""
        for name, value in defaults.items():
            self._widgets.text(name, value, name.replace("_", " "))
        return {name: str(self._widgets.get(name)).strip() for name in defaults}

    def show(self, what: Shown, charts: Path) -> None:
        """Show a table by `display`, a chart as a picture without scripts, a sentence as output."""
        if isinstance(what, str):
            sys.stdout.write(f"{what}\n")
        elif isinstance(what, alt.TopLevelMixin):
            self._html(picture(what))
        else:
            self._display(self._spark.createDataFrame(what) if isinstance(what, pa.Table) else what)


class Kernel:
    """Jupyter, or VS Code: tables and charts are inline; widgets have the notebook's values."""

    spark = None

    def widgets(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """The defaults: to change them, edit the call of `open_notebook`."""
        return {name: value.strip() for name, value in defaults.items()}

    def show(self, what: Shown, charts: Path) -> None:
        """Show it in the cell's output."""
        import_module("IPython.display").display(bundle_of(what), raw=True)


class Laptop:
    """A terminal: widgets are name=value arguments, tables are text, charts are HTML files."""

    spark = None

    def __init__(self, arguments: list[str], notebook: str) -> None:
        self._arguments = arguments
        self._notebook = notebook
        self._charts = 0
        out = plain_console()
        self._out = out if out.is_terminal else plain_console(width=_WIDTH)

    def widgets(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """The defaults, or arguments such as topic=orders. Raises InputError for unknown ones."""
        given = {}
        for argument in self._arguments:
            name, equals, value = argument.partition("=")
            if not equals or name not in defaults:
                raise InputError(
                    f"{argument} sets no widget of this notebook; write NAME=VALUE with one of "
                    f"{', '.join(defaults)}"
                )
            given[name] = value.strip()
        return {**defaults, **given}

    def show(self, what: Shown, charts: Path) -> None:
        """Show a table as text, a chart as a file that needs no network."""
        if isinstance(what, str):
            self._out.print(what)
        elif isinstance(what, alt.TopLevelMixin):
            self._charts += 1
            charts.mkdir(parents=True, exist_ok=True)
            path = charts / f"{self._notebook}-{self._charts}.html"
            what.save(str(path), inline=True)
            self._out.print(f"chart: {path}")
        else:
            self._out.print(_table(what))


class Notebook:
    """One open notebook: its widgets, its lake, and `display`. Made by `open_notebook`."""

    def __init__(self, host: Host, widgets: Mapping[str, str]) -> None:
        self._host = host
        self._widgets = dict(widgets)

    @property
    def spark(self) -> "SparkSession":
        """The session, made on first use: our notebooks need none for a lake in a folder."""
        return self.lake.spark

    @property
    def session(self) -> "SparkSession | None":
        """The existing session; None if one is made on demand."""
        return self._host.spark

    def widget(self, name: str) -> str:
        """The value of a widget."""
        return self._widgets[name]

    @cached_property
    def lake(self) -> mirrorlake.OpenLake:
        """The lake that the widget `lake` names: a folder, or catalog.schema. Raises InputError."""
        place = place_of(self.widget("lake"))
        catalog, schema, path = (place.get(name) for name in ("catalog", "schema", "path"))
        return mirrorlake.open(catalog=catalog, schema=schema, path=path, spark=self.session)

    @property
    def directory(self) -> Path | None:
        """The folder of a local lake."""
        path = place_of(self.widget("lake")).get("path")
        return None if path is None else (Path.cwd() / path).resolve()

    @property
    def topology_file(self) -> Path:
        """The topology file: the widget's, else mirrorlake.yml beside a local lake, or in the
        bundle's volume of a schema."""
        if self._widgets.get("topology"):
            return Path(self._widgets["topology"])
        if self.directory is not None:
            return self.directory.parent / "mirrorlake.yml"
        place = place_of(self.widget("lake"))
        return Path("/Volumes", place["catalog"], place["schema"], "files", "mirrorlake.yml")

    @cached_property
    def flow(self) -> str:
        """The flow to look at: the widget's, else the first one by name. Raises InputError."""
        known = [row["flow"] for row in self.rows("flows")]
        wanted = self._widgets.get("flow") or (known[0] if known else "")
        if wanted not in known:
            problem = f"there is no flow {wanted}" if wanted else "no flow has run"
            raise InputError(
                f"{problem} in {self.widget('lake')}; known are: {', '.join(known) or 'none'}"
            )
        return wanted

    @cached_property
    def topic(self) -> str:
        """The topic to look at: the widget's, else the one with the most records."""
        if wanted := self._widgets.get("topic"):
            return wanted
        rows = self.rows("busiest_topic", flow=self.flow)
        if not rows:
            raise InputError(f"flow {self.flow} has no topic yet; run `mirrorlake run` first")
        return str(rows[0]["topic"])

    @cached_property
    def span(self) -> dict[str, str]:
        """The time span to look at, texts with a zone: the widgets', or the hour to the last batch.

        Raises InputError for an invalid time.
        """
        asked = {name: self._widgets.get(name, "") for name in ("since", "until")}
        (row,) = self.rows("span", flow=self.flow, **asked)
        if row["wrong"]:
            raise InputError("since and until are times such as 2026-11-21 23:47:00, or empty")
        return {"since": row["since"], "until": row["until"]}

    def query(self, name: str, **args: object) -> pa.Table:
        """Run the package's `sql/notebooks/<name>.sql` on this lake, by its engine."""
        return self.packaged("notebooks", name, **args)

    def rows(self, name: str, **args: object) -> list[dict[str, Any]]:
        """The same as `query`, as rows."""
        return plain_rows(self.query(name, **args))

    def packaged(self, folder: str, name: str, **args: object) -> pa.Table:
        """Run the package's `sql/<folder>/<name>.sql` on this lake, by its engine."""
        text = (files("mirrorlake") / "sql" / folder / f"{name}.sql").read_text(encoding="utf-8")
        return self.lake.arrow(text, **args)

    def number(self, name: str, default: float) -> float:
        """A widget as a number, or the default if it is empty. Raises InputError."""
        try:
            return float(self.widget(name) or default)
        except ValueError:
            raise InputError(
                f"the widget {name} holds {self.widget(name)}, which is not a number"
            ) from None

    def display(self, *what: Shown) -> None:
        """Show tables, charts and sentences."""
        for shown in what:
            self._host.show(shown, self.charts)

    @property
    def charts(self) -> Path:
        """The folder for charts that need a file: beside a local lake."""
        directory = self.directory
        return (Path.cwd() if directory is None else directory.parent) / "notebook-charts"


def open_notebook(namespace: Mapping[str, Any], **widgets: str) -> Notebook:
    """Open a notebook; `namespace` is its `globals()`, `widgets` are the names and defaults of its
    widgets.

    Each notebook has the widget `lake`. On Databricks it uses the namespace's `spark`, `dbutils`,
    `display` and `displayHTML`. In Jupyter and VS Code all is shown inline, and widgets have the
    values given here, including `lake`. A file run as a script takes its values from the command
    line, and an error of ours ends it with one sentence.
    """
    if {"dbutils", "display", "displayHTML"} <= namespace.keys():
        workspace = Workspace(namespace)
        return Notebook(workspace, workspace.widgets({"lake": WORKSPACE_LAKE, **widgets}))
    if in_kernel():
        kernel = Kernel()
        return Notebook(kernel, kernel.widgets({"lake": DEMO_LAKE, **widgets}))
    as_script = namespace.get("__name__") == "__main__" and "__file__" in namespace
    name = Path(str(namespace.get("__file__", "notebook"))).stem
    if as_script:
        sys.excepthook = _one_sentence
    laptop = Laptop(sys.argv[1:] if as_script else [], name)
    return Notebook(laptop, laptop.widgets({"lake": DEMO_LAKE, **widgets}))


def place_of(text: str) -> dict[str, str]:
    """The arguments of `mirrorlake.open` for the widget `lake`: catalog.schema, or a folder."""
    parts = text.split(".")
    if len(parts) == 2 and all(part.replace("_", "").replace("-", "").isalnum() for part in parts):
        return {"catalog": parts[0], "schema": parts[1]}
    if not text:
        raise InputError("the widget lake is empty; name a folder, or catalog.schema")
    return {"path": text}


def _one_sentence(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """As in the command line: one sentence for an error of ours, a traceback for any other."""
    if isinstance(error, MirrorlakeError):
        sys.stderr.write(f"mirrorlake: {error}\n")
    else:
        sys.__excepthook__(kind, error, trace)


def _table(what: "pa.Table | DataFrame") -> Table:
    columns, rows = rows_of(what)
    table = plain_table(*columns)
    table.caption = None if rows else "no rows"
    for row in rows[:SHOWN_ROWS]:
        table.add_row(*(cell_text(row[name]) for name in columns))
    if len(rows) > SHOWN_ROWS:
        table.caption = f"the first {SHOWN_ROWS} rows"
    return table
