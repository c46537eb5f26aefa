"""Reads a statement that makes a table, by sqlglot."""

import pyarrow as pa
import sqlglot
from sqlglot import exp

from mirrorlake.lake.definitions import Column, Definition

#: Spark's types that the tables use, as Arrow's. Timestamps are instants.
_ARROW = {
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.VARBINARY: pa.binary(),
    exp.DType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
}


def parsed(table: str, text: str) -> Definition:
    """The definition of a table, from the statement that makes it."""
    statement = sqlglot.parse_one(text, read="databricks")
    properties, comment = {}, ""
    for property_ in statement.args["properties"].expressions:
        if isinstance(property_, exp.SchemaCommentProperty):
            comment = property_.this.name
        elif type(property_) is exp.Property:
            properties[property_.name] = property_.args["value"].name
    return Definition(table, tuple(map(_column, statement.this.expressions)), comment, properties)


def _column(given: exp.ColumnDef) -> Column:
    kind = given.args["kind"]
    constraints = {type(each.kind): each.kind for each in given.args.get("constraints") or ()}
    comment = constraints.get(exp.CommentColumnConstraint)
    required = exp.NotNullColumnConstraint in constraints
    text = None if comment is None else comment.name
    return Column(given.name, kind.sql("databricks"), _arrow(kind), required, text)


def _arrow(kind: exp.DataType) -> pa.DataType:
    if kind.this == exp.DType.ARRAY:
        return pa.list_(_arrow(kind.expressions[0]))
    if kind.this == exp.DType.MAP:
        return pa.map_(_arrow(kind.expressions[0]), _arrow(kind.expressions[1]))
    if kind.this == exp.DType.STRUCT:
        return pa.struct([(field.name, _arrow(field.args["kind"])) for field in kind.expressions])
    return _ARROW[kind.this]
