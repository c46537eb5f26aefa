"""The pieces of a .lvdash.json file, typed: what of Databricks' format (AI/BI dashboards, 12 columns) we use. Pure.

Names are the file's. A key, a widget type or a version that is not written down here is an error, so that a widget is
never drawn in part.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """A piece of the file. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Dataset(Part):
    """One query; `queryLines` are joined with nothing between."""

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
    """What a widget takes from a dataset: raw rows if `disaggregated`, else groups by the fields that are no
    aggregates."""

    datasetName: str
    fields: tuple[QueryField, ...]
    disaggregated: bool
    orders: tuple[Order, ...] = ()


class NamedQuery(Part):
    """A widget's query."""

    name: str
    query: Query


class DecimalPlaces(Part):
    """How many, at most or exactly."""

    type: Literal["max", "exact"]
    places: int


class Format(Part):
    """How a number is written."""

    type: Literal["number", "number-plain", "number-percent"]
    abbreviation: Literal["compact"] | None = None
    decimalPlaces: DecimalPlaces | None = None
    suffix: str | None = None


class Operand(Part):
    """What a value is compared with."""

    type: Literal["data-value"]
    value: str


class Condition(Part):
    """When a rule holds."""

    operator: Literal["=", "!=", ">", ">=", "<", "<="]
    operand: Operand


class ThemeColor(Part):
    """A colour of the theme, counted from 1."""

    themeColorType: Literal["visualizationColors"]
    position: int = Field(ge=1)


class CounterRule(Part):
    """A counter's colour. The first rule that holds counts."""

    condition: Condition
    color: str


class CounterStyle(Part):
    """A counter's colours."""

    rules: tuple[CounterRule, ...]


class CellRule(Part):
    """A cell's colour. The first rule that holds counts."""

    condition: Condition
    foregroundColor: ThemeColor


class CellStyle(Part):
    """A column's colours."""

    type: Literal["basic"]
    rules: tuple[CellRule, ...]


class Sort(Part):
    """What categories are sorted by: the values on the other axis, rising or (`-reversed`) falling."""

    by: Literal["x", "y", "x-reversed", "y-reversed"]


class Mapping(Part):
    """The colour of one category."""

    value: str
    color: str


class Scale(Part):
    """What kind of values a channel shows."""

    type: Literal["temporal", "quantitative", "categorical"]
    sort: Sort | None = None
    mappings: tuple[Mapping, ...] = ()


class Axis(Part):
    """An axis' title."""

    title: str | None = None
    hideTitle: bool = False


class Named(Part):
    """A field of the query, under the name that people read."""

    fieldName: str
    displayName: str


class Channel(Named):
    """A field on an axis, an angle, or a colour."""

    scale: Scale
    axis: Axis | None = None
    format: Format | None = None


class Series(Part):
    """Several fields on one axis."""

    fields: tuple[Named, ...]
    scale: Scale
    axis: Axis | None = None
    format: Format | None = None


class XYEncodings(Part):
    """Lines, bars and areas: `y` is one field, split by `color`, or several."""

    x: Channel
    y: Channel | Series
    color: Channel | None = None


class HeatmapEncodings(Part):
    """Two categories and a colour."""

    x: Channel
    y: Channel
    color: Channel


class PieEncodings(Part):
    """Slices."""

    angle: Channel
    color: Channel


class TwoAxes(Part):
    """Bars on the left axis, lines on the right one."""

    primary: Series
    secondary: Series


class ComboEncodings(Part):
    """Bars and lines over one x."""

    x: Channel
    y: TwoAxes


class CounterValue(Named):
    """The number of a counter."""

    format: Format | None = None
    style: CounterStyle | None = None


class CounterEncodings(Part):
    """One number."""

    value: CounterValue


class Column(Named):
    """One column of a table."""

    format: Format | None = None
    style: CellStyle | None = None


class TableEncodings(Part):
    """Columns."""

    columns: tuple[Column, ...]


class FilterField(Named):
    """A column that a filter acts on, in the dataset of the query named."""

    queryName: str


class FilterEncodings(Part):
    """All columns that a filter acts on."""

    fields: tuple[FilterField, ...]


class Bound(Part):
    """One end of a range, such as now-24h/h: a time ago, rounded to whole units."""

    value: str


class RangeOfTime(Part):
    """Both ends, inclusive."""

    dataType: Literal["DATE", "DATETIME"]
    min: Bound
    max: Bound


class DefaultRange(Part):
    """What is chosen when the page opens."""

    range: RangeOfTime


class RangeSelection(Part):
    """What is chosen."""

    defaultSelection: DefaultRange


class Frame(Part):
    """Title and description around a widget."""

    showTitle: bool
    title: str
    showDescription: bool = False
    description: str | None = None


class Mark(Part):
    """How bars of one place stand to each other."""

    layout: Literal["group", "stack"]


class CounterSpec(Part):
    """A counter."""

    version: Literal[2]
    widgetType: Literal["counter"]
    encodings: CounterEncodings
    frame: Frame


class XYSpec(Part):
    """A line, bar or area chart."""

    version: Literal[3]
    widgetType: Literal["line", "bar", "area"]
    encodings: XYEncodings
    frame: Frame
    mark: Mark | None = None


class HeatmapSpec(Part):
    """A heat map."""

    version: Literal[3]
    widgetType: Literal["heatmap"]
    encodings: HeatmapEncodings
    frame: Frame


class PieSpec(Part):
    """A pie."""

    version: Literal[3]
    widgetType: Literal["pie"]
    encodings: PieEncodings
    frame: Frame


class ComboSpec(Part):
    """Bars and lines."""

    version: Literal[1]
    widgetType: Literal["combo"]
    encodings: ComboEncodings
    frame: Frame


class TableSpec(Part):
    """A table."""

    version: Literal[2]
    widgetType: Literal["table"]
    encodings: TableEncodings
    frame: Frame


class ValuesFilterSpec(Part):
    """A filter by values."""

    version: Literal[2]
    widgetType: Literal["filter-multi-select"]
    encodings: FilterEncodings
    frame: Frame


class RangeFilterSpec(Part):
    """A filter by time."""

    version: Literal[2]
    widgetType: Literal["filter-date-range-picker"]
    encodings: FilterEncodings
    selection: RangeSelection | None = None
    frame: Frame


ChartSpec = XYSpec | HeatmapSpec | PieSpec | ComboSpec
FilterSpec = ValuesFilterSpec | RangeFilterSpec
Spec = Annotated[
    CounterSpec | XYSpec | HeatmapSpec | PieSpec | ComboSpec | TableSpec | ValuesFilterSpec | RangeFilterSpec,
    Field(discriminator="widgetType"),
]


class Lines(Part):
    """The text of a text widget, concatenated. Of Markdown, a heading with # and paragraphs are shown."""

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
    """A colour by day and by night."""

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
    """How it looks."""

    theme: Theme
