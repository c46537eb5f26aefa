"""The typed parts of a .lvdash.json file: the subset of Databricks' format (AI/BI dashboards, 12
columns) that we use. Pure.

Names are the file's. Unknown keys, widget types and versions are errors: none is drawn in part.
"""

import re
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import Field

from mirrorlake.dashboard.encodings import Part
from mirrorlake.dashboard.specs import Spec

Kind = Literal["plain", "trunc", "sum", "avg", "min", "max", "count", "countdistinct"]

_COLUMN = r"`(?P<column>[^`]+)`"
_PLAIN = re.compile(_COLUMN)
_AGGREGATE = re.compile(rf"(?P<function>SUM|AVG|MIN|MAX|COUNT)\({_COLUMN}\)")
_DISTINCT = re.compile(rf"COUNT\(DISTINCT {_COLUMN}\)")
_TRUNC = re.compile(rf'DATE_TRUNC\("(?P<unit>MINUTE|HOUR|DAY)", {_COLUMN}\)')


@dataclass(frozen=True)
class FieldPlan:
    """One field: an operation on a column. `unit` is MINUTE, HOUR or DAY for `trunc`; the column of
    COUNT(`*`) is `*`."""

    kind: Kind
    column: str
    unit: str | None = None


def parse_expression(text: str) -> FieldPlan:
    """Parse a widget's field: a backticked column; SUM, AVG, MIN, MAX or COUNT of one; COUNT(`*`);
    COUNT(DISTINCT ...); DATE_TRUNC to a unit. Anything more belongs in a view. Raises ValueError,
    with a sentence, for it."""
    if match := _PLAIN.fullmatch(text):
        return FieldPlan("plain", match["column"])
    if match := _DISTINCT.fullmatch(text):
        return FieldPlan("countdistinct", match["column"])
    if match := _TRUNC.fullmatch(text):
        return FieldPlan("trunc", match["column"], match["unit"])
    match = _AGGREGATE.fullmatch(text)
    if match and (match["column"] != "*" or match["function"] == "COUNT"):
        return FieldPlan(cast(Kind, match["function"].lower()), match["column"])
    raise ValueError(
        f"the expression {text} is not one of those that dashboards have; put the logic into a view"
    )


class Dataset(Part):
    """One query; `queryLines` are joined without separator."""

    name: str
    displayName: str
    queryLines: tuple[str, ...]

    @property
    def query(self) -> str:
        """The statement."""
        return "".join(self.queryLines)


class QueryField(Part):
    """One column of a widget's query: a name, and a column or an aggregate of one."""

    name: str
    expression: str


class Order(Part):
    """One key that rows are sorted by."""

    direction: Literal["ASC", "DESC"]
    expression: str


class Query(Part):
    """A widget's data: raw rows if `disaggregated`, else groups by fields not aggregated."""

    datasetName: str
    fields: tuple[QueryField, ...]
    disaggregated: bool
    orders: tuple[Order, ...] = ()


class NamedQuery(Part):
    """A widget's query."""

    name: str
    query: Query


class Lines(Part):
    """The text of a text widget, concatenated: Markdown's headings with #, and paragraphs."""

    lines: tuple[str, ...]


class Widget(Part):
    """One widget: a text, or a spec with its queries."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")
    queries: tuple[NamedQuery, ...] = ()
    spec: Spec | None = None
    multilineTextboxSpec: Lines | None = None


class Position(Part):
    """A place on the grid, in columns and rows."""

    x: int = Field(ge=0)
    y: int = Field(ge=0)
    width: int = Field(ge=1)
    height: int = Field(ge=1)


class Placed(Part):
    """A widget in its place."""

    widget: Widget
    position: Position


class Page(Part):
    """A page, or the filters that all pages share."""

    name: str
    displayName: str
    pageType: Literal["PAGE_TYPE_CANVAS", "PAGE_TYPE_GLOBAL_FILTERS"]
    layoutVersion: Literal["GRID_V1"]
    layout: tuple[Placed, ...]


class Shades(Part):
    """A colour in light and in dark mode."""

    light: str
    dark: str


class Theme(Part):
    """The colours."""

    canvasBackgroundColor: Shades
    widgetBackgroundColor: Shades
    widgetBorderColor: Shades
    fontColor: Shades
    selectionColor: Shades
    visualizationColors: tuple[str, ...]
    widgetHeaderAlignment: Literal["LEFT"]


class UiSettings(Part):
    """The appearance."""

    theme: Theme
