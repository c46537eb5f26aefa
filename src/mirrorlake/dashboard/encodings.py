"""How a widget of a .lvdash.json file encodes its fields: axes, colours, numbers, columns. Pure."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """A part of the file. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
    """The operand of a comparison."""

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
    """A counter's colour. The first rule that holds applies."""

    condition: Condition
    color: str


class CounterStyle(Part):
    """A counter's colours."""

    rules: tuple[CounterRule, ...]


class CellRule(Part):
    """A cell's colour. The first rule that holds applies."""

    condition: Condition
    foregroundColor: ThemeColor


class CellStyle(Part):
    """A column's colours."""

    type: Literal["basic"]
    rules: tuple[CellRule, ...]


class Sort(Part):
    """The order of categories: by the values on the other axis, rising or (`-reversed`) falling."""

    by: Literal["x", "y", "x-reversed", "y-reversed"]


class Mapping(Part):
    """The colour of one category."""

    value: str
    color: str


class Scale(Part):
    """The kind of values on a channel."""

    type: Literal["temporal", "quantitative", "categorical"]
    sort: Sort | None = None
    mappings: tuple[Mapping, ...] = ()


class Axis(Part):
    """An axis' title."""

    title: str | None = None
    hideTitle: bool = False


class Named(Part):
    """A field of the query and its display name."""

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
