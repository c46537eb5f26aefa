"""Which conditions mean the same to DuckDB as to Spark. It must not be guessed: the rows that a
condition picks are deleted. Pure.

The engines agree on far more. But each reads a LIKE with a backslash, a regular expression of
Java's, a time as text or a binary beside a text in its own way, and another answer raises no error.
"""

from collections.abc import Collection
from difflib import get_close_matches

from sqlglot import exp, parse_one
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import ParseError, TokenError

_NUMBERS = frozenset({"partition", "offset", "batch_id", "generation", "timestamp_ms"})
_TEXTS = frozenset({"topic", "source_cluster"})
_BINARIES = frozenset({"key", "value"})
_CONNECTIVES = (exp.And, exp.Or, exp.Not, exp.Paren)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Between)


def means_the_same(condition: str) -> bool:
    """Whether a condition on `records`, in Spark's SQL, without a backslash, has only these, with
    AND, OR, NOT: numbers compared with numbers; texts (`topic`, `source_cluster`, CAST(key AS
    STRING), CAST(value AS STRING)) compared with texts or LIKE one; IN; IS NULL."""
    if "\\" in condition:
        return False
    try:
        return _is_condition(parse_one(condition, dialect=Databricks))
    except (ParseError, TokenError):
        return False


def misspelt_column(condition: str, columns: Collection[str]) -> tuple[str, str] | None:
    """A name in a condition that is no column, and the column that it resembles. None where the
    condition may have names of its own: in a subquery, or as parameters of a lambda."""
    try:
        tree = parse_one(condition, dialect=Databricks)
    except (ParseError, TokenError):
        return None
    if tree.find(exp.Lambda, exp.Query):
        return None
    for column in tree.find_all(exp.Column):
        name = column.parts[0].name.lower()
        alike = get_close_matches(name, columns, 1, 0.75)
        if name not in columns and alike:
            return name, alike[0]
    return None


def _is_condition(node: exp.Expr) -> bool:
    if isinstance(node, _CONNECTIVES):
        return all(map(_is_condition, node.iter_expressions()))
    if isinstance(node, exp.Boolean):
        return True
    if isinstance(node, exp.Is):
        return _kind(node.this, _NUMBERS | _TEXTS | _BINARIES) is not None and isinstance(
            node.expression, exp.Null
        )
    if isinstance(node, exp.Like):
        operands = (node.this, node.expression)
        return all(_kind(each) == "text" for each in operands)
    if isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest")):
        return False
    if isinstance(node, (*_COMPARISONS, exp.In)):
        kinds = {_kind(each) for each in node.iter_expressions()}
        return len(kinds) == 1 and None not in kinds
    return False


def _kind(node: exp.Expr, others: frozenset[str] = frozenset()) -> str | None:
    """The kind of a value, "number" or "text"; None where that is not known, or ambiguous."""
    if isinstance(node, exp.Neg):
        return "number" if _kind(node.this) == "number" else None
    if isinstance(node, exp.Literal):
        if node.is_string:
            return "text"
        return "number" if node.is_int else None
    if isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.TEXT:
        return "text" if type(node) is exp.Cast and _name(node.this) in _BINARIES else None
    name = _name(node)
    if name in _NUMBERS:
        return "number"
    return "text" if name in _TEXTS or name in others else None


def _name(node: exp.Expr) -> str | None:
    """The name of a plain column."""
    return node.name.lower() if isinstance(node, exp.Column) and not node.table else None
