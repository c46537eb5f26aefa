"""Names in a catalog: for the tables of a lake at a path or URL, which delta-rs writes, and for the
views of any lake.

A catalog has such tables as external ones, by their location: making such a name commits nothing.
An existing name is never made anew, since grants depend on it; nor is it moved. For the same reason
a view is made once, altered where its query has changed, and never replaced (docs/not_obvious.md).
A session that reads a folder makes its own views instead, which no other session sees
(`Lake.make_known`).
"""

import re

from mirrorlake.errors import LakeError
from mirrorlake.lake.catalog_names import ALTERED, CREATED, KEPT, CatalogNames, StatementRefused
from mirrorlake.lake.definitions import TABLES, VIEWS, view_query
from mirrorlake.lake.folder import quoted


def register_tables(names: CatalogNames, root: str) -> dict[str, str]:
    """Give tables of a lake at `root`, a path or URL, its name; returns what was done by table.

    Raises LakeError where a name is another table's or a view's, and makes none then; also where
    the catalog refuses.
    """
    known = names.known
    for table in TABLES:
        if table in known and (other := _other(names, table, f"{root}/{table}")):
            raise LakeError(
                f"the name {table} of {names.place} is not that of the lake at {root}: {other}; "
                "drop it there, which takes no file of a table with a location of its own away, or "
                "write another lake.schema"
            )
    return {table: _registered(names, table, root, table in known) for table in TABLES}


def _registered(names: CatalogNames, table: str, root: str, is_known: bool) -> str:
    if is_known:
        return KEPT
    place = f"{root}/{table}"
    name = f"{names.schema}.{table}"
    try:
        names.run(f"CREATE TABLE IF NOT EXISTS {name} USING DELTA LOCATION '{quoted(place)}'")
    except StatementRefused as error:
        raise LakeError(
            f"table {table} cannot be registered in {names.place} at {place} ({error}); the "
            "principal that runs this command needs CREATE TABLE on the schema and, in Unity "
            "Catalog, CREATE EXTERNAL TABLE on the external location"
        ) from error
    return CREATED


def check_own(names: CatalogNames, table: str) -> None:
    """Raise LakeError for a table that a catalog has only by location: no session commits to it."""
    if names.says(table, "Type", "MANAGED"):
        return
    detail = names.detail(table)
    if detail.get("Type") == "EXTERNAL":
        raise LakeError(
            f"the tables of {names.place} lie outside of the catalog ({table} at "
            f"{detail.get('Location')}), where mirrorlake commits to them without Spark; name the "
            "folder that holds them as lake.path, beside lake.catalog and lake.schema"
        )


def _other(names: CatalogNames, table: str, place: str) -> str | None:
    """What a name in a catalog stands for, if not for the external table at a place; else None."""
    try:
        detail = names.detail(table)
    except StatementRefused as error:
        return f"what it is cannot be seen ({error})"
    kind = detail.get("Type", "")
    if kind != "EXTERNAL":
        return f"it is a {'view' if kind == 'VIEW' else 'table of the catalog itself'}"
    location = detail.get("Location", "a place that is not shown")
    return None if same_place(location, place) else f"it lies at {location}"


def same_place(one: str, other: str) -> bool:
    """Whether two locations are the same, as Spark, catalogs and delta-rs write them. Pure."""
    return _plain(one) == _plain(other)


def _plain(location: str) -> str:
    text = re.sub(r"^(?:file|dbfs):/*", "/", location)
    text = re.sub(r"^s3[an]:", "s3:", re.sub(r"^abfs:", "abfss:", text))
    return text.rstrip("/")


def keep_views(names: CatalogNames) -> dict[str, str]:
    """Make missing views, and alter those whose query differs from ours; returns what was done.

    Two processes may do this at once. Raises LakeError where a view can be neither made nor
    altered: it is another principal's.
    """
    return {view: keep_view(names, view) for view in VIEWS}


def keep_view(names: CatalogNames, view: str) -> str:
    """The same for one view; those that it reads have to be there."""
    query, is_known = view_query(view), view in names.known
    if is_known and names.says(view, "View Text", query):
        return KEPT
    verb = f"ALTER VIEW {view}" if is_known else f"CREATE VIEW IF NOT EXISTS {view}"
    try:
        names.run(f"{verb} AS\n{query}")
    except StatementRefused as error:
        done = "altered, which only its owner may" if is_known else "made"
        raise LakeError(
            f"the view {view} in {names.schema} cannot be {done} ({error}); let the principal that "
            f"runs this command, or a group of theirs, own the view (ALTER VIEW {view} OWNER TO …) "
            "and have CREATE TABLE on the schema"
        ) from error
    return ALTERED if is_known else CREATED
