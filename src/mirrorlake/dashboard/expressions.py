"""Parses the expressions allowed in a widget's fields. Pure.

A backticked column; SUM, AVG, MIN, MAX or COUNT of one; COUNT(`*`); COUNT(DISTINCT ...); DATE_TRUNC
to a unit. Anything more belongs in a view.
"""

import re
from dataclasses import dataclass
from typing import Literal, cast

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
    """Parse an expression. Raises ValueError, with a sentence, for an unknown one."""
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
