"""The kinds of widgets of a .lvdash.json file, each in the one supported version. Pure."""

from typing import Annotated, Literal

from pydantic import Field

from mirrorlake.dashboard.encodings import (
    ComboEncodings,
    CounterEncodings,
    FilterEncodings,
    HeatmapEncodings,
    Part,
    PieEncodings,
    TableEncodings,
    XYEncodings,
)


class Bound(Part):
    """One end of a range, such as now-24h/h: a time ago, rounded to whole units."""

    value: str


class RangeOfTime(Part):
    """Both ends, inclusive."""

    dataType: Literal["DATE", "DATETIME"]
    min: Bound
    max: Bound


class DefaultRange(Part):
    """The range selected when the page opens."""

    range: RangeOfTime


class RangeSelection(Part):
    """The selection."""

    defaultSelection: DefaultRange


class Frame(Part):
    """Title and description around a widget."""

    showTitle: bool
    title: str
    showDescription: bool = False
    description: str | None = None


class Mark(Part):
    """The layout of bars at one place."""

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
    CounterSpec | XYSpec | HeatmapSpec | PieSpec | ComboSpec | TableSpec | FilterSpec,
    Field(discriminator="widgetType"),
]
