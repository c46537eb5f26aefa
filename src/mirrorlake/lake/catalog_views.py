"""The views of a lake in a catalog: made once, altered where their query has changed, and never
replaced, which would drop their grants (docs/not_obvious.md). A session that reads a folder makes
its own views instead, which no other session sees (`Lake.make_known`)."""

from mirrorlake.errors import LakeError
from mirrorlake.lake.catalog_names import ALTERED, CREATED, KEPT, CatalogNames, StatementRefused
from mirrorlake.lake.definitions import VIEWS, view_query


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
