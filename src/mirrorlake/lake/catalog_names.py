"""Names of tables and views in a catalog's schema, by SQL that a session or warehouse runs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.lake import Lake

#: Runs a statement in which bare names are the schema's; returns its rows. Raises InputError, with
#: the reason, if it cannot be run, LakeError where the catalog cannot be reached.
RunStatement = Callable[[str], Sequence[Mapping[str, Any]]]
#: What was done for a name.
CREATED, ALTERED, KEPT = "created", "altered", "kept"
#: A view, in what `SHOW TABLE EXTENDED` returns for a name. Some catalogs do not list views there.
_VIEW = re.compile(r"^Type: VIEW\b", re.MULTILINE)
#: Behind this row `DESCRIBE` describes the table itself, in front of it its columns.
_OF_TABLE = "# Detailed Table Information"


class StatementRefused(InputError):
    """Raised when a catalog answers, but does not run a statement."""


class CatalogNames:
    """One schema. `schema` is its name in statements, quoted."""

    def __init__(self, run: RunStatement, schema: str) -> None:
        self._run = run
        self.schema = schema

    def run(self, text: str) -> Sequence[Mapping[str, Any]]:
        """Run a statement. Raises StatementRefused; LakeError where the catalog does not answer."""
        try:
            return self._run(text)
        except LakeError:
            raise
        except InputError as error:
            raise StatementRefused(str(error)) from error

    @property
    def place(self) -> str:
        """The schema, as messages name it."""
        return _plain(self.schema)

    @cached_property
    def known(self) -> set[str]:
        """All names of tables and views, as of their first use. Raises LakeError."""
        if any(_VIEW.search(text) for text in self.described.values()):
            return {*self.described}  # views are among them
        try:
            tables = self.run(f"SHOW TABLES IN {self.schema}")
            views = self.run(f"SHOW VIEWS IN {self.schema}")  # some catalogs list them apart
        except StatementRefused as error:
            raise LakeError(
                f"the schema {self.place} cannot be looked into ({error}); it has to be there, and "
                "to be shown to the principal that runs this command"
            ) from error
        return {row["tableName"] for row in tables} | {row["viewName"] for row in views}

    @cached_property
    def described(self) -> dict[str, str]:
        """The catalog's description of each name, in lines such as `Type: MANAGED` and `Location:
        …`, as of its first use; empty where it does not describe all at once. Raises LakeError."""
        try:
            rows = self.run(f"SHOW TABLE EXTENDED IN {self.schema} LIKE '*'")
        except StatementRefused:
            return {}
        return {row["tableName"]: row["information"] for row in rows}

    def says(self, name: str, what: str, value: str) -> bool:
        """Whether the catalog gives a name this value for `what`, such as Type or View Text: in its
        description of all names, or else of this one. It may change blanks and the ends of lines.
        Raises as `run`."""
        match = re.search(
            rf"^{what}: (.*?)(?=\n[A-Z][\w ]*: |\Z)",
            self.described.get(name, ""),
            re.DOTALL | re.MULTILINE,
        )
        if match is not None and match[1].split() == value.split():
            return True
        return self.detail(name).get(what, "").split() == value.split()

    def detail(self, name: str) -> dict[str, str]:
        """The details of a table or view, such as Type, Location or View Text. Raises as `run`."""
        rows = [*self.run(f"DESCRIBE TABLE EXTENDED {self.schema}.{name}")]
        begins = next(
            (number for number, row in enumerate(rows) if row["col_name"] == _OF_TABLE), len(rows)
        )
        return {str(row["col_name"]): str(row["data_type"]) for row in rows[begins + 1 :]}


def names_by_session(lake: Lake) -> CatalogNames:
    """The names of a lake's existing schema, by the lake's session."""
    from mirrorlake.spark.causes import cause_of, metastore_error
    from mirrorlake.spark.failures import SPARK_FAILURES  # only a process with a session has Spark

    def run(text: str) -> Sequence[Mapping[str, Any]]:
        try:
            return [row.asDict() for row in lake.sql(text).collect()]
        except SPARK_FAILURES as error:
            raise metastore_error(error) or InputError(cause_of(error)) from error

    return CatalogNames(run, lake.schema)


@contextmanager
def catalog_answers(schema: str) -> Iterator[None]:
    """Raise LakeError where a session cannot say what is in a schema."""
    from mirrorlake.spark.causes import cause_of, metastore_error
    from mirrorlake.spark.failures import SPARK_FAILURES

    try:
        yield
    except SPARK_FAILURES as error:
        raise metastore_error(error) or LakeError(
            f"the lake in {_plain(schema)} cannot be opened ({cause_of(error)}); the principal "
            "that runs this command has to see the schema and its tables, and to own them where it "
            "runs flows"
        ) from error


def _plain(schema: str) -> str:
    """A schema as messages name it."""
    return schema.replace("`", "")
