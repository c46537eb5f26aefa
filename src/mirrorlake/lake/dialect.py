"""Spark's SQL in DuckDB's words: what sqlglot does, and the rules that it lacks. Pure.

Each view and query has one text, in Spark's dialect. Where a function means different things to
both engines, a rule here makes DuckDB mean Spark's; what has none is refused, never guessed.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from sqlglot import ErrorLevel, exp, parse
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import ParseError, TokenError, UnsupportedError
from sqlglot.parsers.databricks import DatabricksParser

from mirrorlake.errors import InputError, first_line
from mirrorlake.lake.duck_query import WITH_FILES, DuckQuery


class _Spark(Databricks):
    """Spark's dialect, of which sqlglot would drop what it has no word for."""

    class Parser(DatabricksParser):
        FUNCTIONS = {
            **DatabricksParser.FUNCTIONS,
            "PERCENTILE": lambda args: exp.Anonymous(this="percentile", expressions=args),
        }
        FUNCTION_PARSERS = {
            name: parser
            for name, parser in DatabricksParser.FUNCTION_PARSERS.items()
            if name != "PERCENTILE"
        }


#: The table of the rows that a statement goes by.
SOURCE = "source of a change"
_TYPE = exp.DataType.Type
_INTEGERS = {_TYPE.TINYINT, _TYPE.SMALLINT, _TYPE.INT, _TYPE.BIGINT}


@cache
def to_duckdb(text: str) -> DuckQuery:
    """A query of Spark's dialect. A text that makes a view is the query of the view.

    Raises InputError for what is no query, or cannot be translated.
    """
    try:
        statements = [each for each in parse(text, dialect=_Spark) if each is not None]
        tree = _named(_only_query(statements)).transform(_ruled)
        assert tree is not None  # what is left out are hints
        _name_files(tree)
        return _query(tree)
    except (ParseError, TokenError, UnsupportedError) as error:
        raise InputError(f"it cannot be translated for DuckDB: {first_line(error)}") from error


def _tables(tree: exp.Expr) -> frozenset[str]:
    return frozenset(table.name.lower() for table in tree.find_all(exp.Table) if not table.db)


def _parameters(tree: exp.Expr) -> frozenset[str]:
    placeholders = tree.find_all(exp.Placeholder)
    return frozenset(str(placeholder.this) for placeholder in placeholders if placeholder.this)


def _name_files(tree: exp.Expr) -> None:
    """Give a query that asks for Spark's `_metadata.file_path` the rows with their files."""
    for column in list(tree.find_all(exp.Column)):
        if column.table == "_metadata":
            select = column.find_ancestor(exp.Select)
            table = select and select.find(exp.Table)
            if table and not table.name.endswith(WITH_FILES):
                table.replace(_with_files(table))
            column.replace(exp.column("filename"))


def _with_files(table: exp.Expr) -> exp.Expr:
    named = exp.to_identifier(f"{table.name}{WITH_FILES}", quoted=True)
    return exp.alias_(exp.Table(this=named), table.alias_or_name, table=True)


class DuckChange(NamedTuple):
    """A statement in DuckDB's dialect that changes a table, with the parameters that it names."""

    text: str
    table: str
    parameters: frozenset[str]


@cache
def change_to_duckdb(text: str) -> DuckChange:
    """A MERGE or UPDATE of the package, in Spark's dialect."""
    tree = _statement(text)
    assert isinstance(tree, (exp.Merge, exp.Update))
    return DuckChange(_text(tree), tree.this.name, _parameters(tree))


class DuckRewrite(NamedTuple):
    """A statement that deletes rows of `table`, or replaces them, as queries in DuckDB's dialect.

    `source` are the rows that it goes by, if it does: they are made a table SOURCE first, so that
    the others see the same. `removed` are the rows to be deleted: columns `filename` and
    `file_row_number`. `added` are the rows that come in their place; None where none do.
    """

    table: str
    source: DuckQuery | None
    removed: DuckQuery
    added: DuckQuery | None


@cache
def rewrite_to_duckdb(text: str) -> DuckRewrite:
    """A DELETE or a MERGE of the package that deletes what it matches, in Spark's dialect."""
    tree = _statement(text)
    table = tree.this
    rows = exp.select("filename", "file_row_number").from_(_with_files(table))
    if isinstance(tree, exp.Delete):
        return DuckRewrite(table.name, None, _query(rows.where(tree.args["where"].this)), None)
    assert isinstance(tree, exp.Merge)
    using, on = tree.args["using"], tree.args["on"]
    source = exp.alias_(exp.to_table(SOURCE, quoted=True), using.alias, table=True)
    matched, *others = tree.args["whens"].expressions
    assert matched.args["matched"] and matched.args["then"].name == "DELETE" and len(others) < 2
    removed = rows.join(source, on=on, join_type="semi")
    added = [_added(other, source, table, on) for other in others]
    whole = exp.select("*").from_(using.copy())
    return DuckRewrite(table.name, _query(whole), _query(removed), next(iter(added), None))


def _added(when: exp.Expr, source: exp.Expr, table: exp.Table, on: exp.Expr) -> DuckQuery:
    """The rows that WHEN NOT MATCHED inserts."""
    insert = when.args["then"]
    pairs = zip(insert.expression.expressions, insert.this.expressions, strict=True)
    values = [exp.alias_(value.copy(), column.name) for value, column in pairs]
    rows = exp.select(*values).from_(source).join(table.copy(), on=on.copy(), join_type="anti")
    condition = when.args.get("condition")
    return _query(rows if condition is None else rows.where(condition))


def _statement(text: str) -> exp.Expr:
    (tree,) = parse(text, dialect=_Spark)
    assert tree is not None
    ruled = tree.transform(_ruled)
    assert ruled is not None
    return ruled


def _query(tree: exp.Expr) -> DuckQuery:
    return DuckQuery(_text(tree), _tables(tree), _parameters(tree))


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.RAISE)


@cache
def columns_of(text: str) -> tuple[tuple[str, str], ...]:
    """Name and DuckDB's type of each column of a text that makes a table."""
    (tree,) = parse(text, dialect=_Spark)
    assert tree is not None
    return tuple(
        (column.name, _type(column.args["kind"]))
        for column in tree.find_all(exp.ColumnDef)
        if column.parent is tree.this
    )


@cache
def type_of(spark_type: str) -> str:
    """DuckDB's name of one of Spark's types, such as STRING."""
    return _type(exp.DataType.build(spark_type, dialect=_Spark))


def _type(kind: exp.DataType) -> str:
    return kind.sql(dialect="duckdb", comments=False)


def _only_query(statements: Sequence[exp.Expr]) -> exp.Expr:
    if len(statements) != 1:
        raise InputError(f"it is {len(statements)} statements; give one")
    tree = statements[0]
    if isinstance(tree, exp.Create) and tree.kind == "VIEW":
        tree = tree.expression
    if not isinstance(tree, exp.Query):
        raise InputError("it is not a query, and DuckDB only reads the lake")
    return tree


def _named(tree: exp.Expr) -> exp.Expr:
    """What has no name of its own is named as Spark names it, such as `count(1)`."""
    if isinstance(tree, exp.Select):
        for selected in tree.selects:
            named = isinstance(selected, (exp.Alias, exp.Column, exp.Star, exp.Dot))
            if not named and not selected.is_star:
                text = selected.sql(dialect="databricks", normalize_functions="lower")
                name = text.replace("count(*)", "count(1)")
                selected.replace(exp.alias_(selected.copy(), name, quoted=True))
    return tree


def _ruled(node: exp.Expr) -> exp.Expr | None:
    """One node, by the rule that there is for it."""
    if isinstance(node, exp.Hint):
        return None  # hints say how Spark is to plan, and nothing about the answer
    if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, (exp.Last, exp.First)):
        kind = exp.LastValue if isinstance(node.this, exp.Last) else exp.FirstValue
        return exp.IgnoreNulls(this=kind(this=node.this.this))
    if isinstance(node, (exp.ArgMax, exp.ArgMin)):
        # Spark's max_by answers with a null where the greatest row has one; arg_max leaves it out.
        name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
        return exp.Anonymous(this=name, expressions=[node.this, node.expression])
    if isinstance(node, exp.CountIf):  # DuckDB's is null over nothing but nulls
        return exp.Count(this=exp.Case().when(node.this, _number(1)), big_int=True)
    if isinstance(node, exp.UnixSeconds):  # epoch() has fractions, and a cast rounds them
        return exp.IntDiv(
            this=exp.Anonymous(this="epoch_us", expressions=[node.this]),
            expression=_number(1_000_000),
        )
    if isinstance(node, exp.Exists) and node.args.get("expression") is not None:
        kept = exp.Anonymous(this="list_filter", expressions=[node.this, node.expression])
        return exp.Paren(
            this=exp.GT(this=exp.Anonymous(this="len", expressions=[kept]), expression=_number(0))
        )
    if isinstance(node, exp.Anonymous) and node.name.lower() == "percentile":
        if len(node.expressions) != 2:
            raise UnsupportedError("percentile with a frequency is not known there")
        return exp.Anonymous(this="quantile_cont", expressions=node.expressions)
    if isinstance(node, exp.RegexpLike):  # a pattern may be none of DuckDB's, see `java_patterns`
        return exp.Anonymous(this="spark_rlike", expressions=[node.this, node.expression])
    if isinstance(node, exp.TimeToStr):
        text = node.args["format"].name.replace("SSS", "%g").replace("XXX", "Z")
        node.set("format", exp.Literal.string(text))
        return node
    return _cast(node) if type(node) is exp.Cast else node


def _cast(node: exp.Cast) -> exp.Expr:
    """Spark reads binary as UTF-8, and cuts decimal places; DuckDB escapes, and rounds."""
    kind = node.to.this
    if isinstance(node.this, (exp.Literal, exp.Null)):
        return node
    if kind == exp.DataType.Type.TEXT:
        return exp.Anonymous(this="spark_text", expressions=[node.this])
    if kind in _INTEGERS:
        long = exp.Anonymous(this="spark_long", expressions=[node.this])
        return long if kind == exp.DataType.Type.BIGINT else exp.Cast(this=long, to=node.to)
    return node


def _number(value: int) -> exp.Literal:
    return exp.Literal(this=str(value), is_string=False)
