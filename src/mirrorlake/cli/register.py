"""`mirrorlake register`: names in a catalog for a lake at a path or URL."""

from collections import Counter
from typing import Any

import typer

from mirrorlake.cli.context import AS_JSON, Context


def register(context: typer.Context, as_json: bool = AS_JSON) -> None:
    """Give the tables of a lake at a path or URL, and the views over them, their names in the
    catalog: lake.catalog and lake.schema. What is there stays, with what was granted on it.

    By the SQL warehouse that the file names, else by a session of Spark. Exits 2 where a name is
    another table's.
    """
    shared: Context = context.obj
    document = shared.lake.register().to_dict()
    shared.end(document, as_json, lambda: shared.say(_sentence(document)))


def _sentence(document: dict[str, Any]) -> str:
    schema = f"{document['catalog']}.{document['schema']}"
    if document["path"] is None:
        return f"the tables are those of {schema} itself: there is nothing to register"
    tables, views = (_counted(document[kind]) for kind in ("tables", "views"))
    return f"{schema}: tables {tables}; views {views}; the tables lie at {document['path']}"


def _counted(rows: list[dict[str, str]]) -> str:
    counts = Counter(row["action"] for row in rows)
    return ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))
