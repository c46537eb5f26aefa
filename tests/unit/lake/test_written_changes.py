"""What `plan` knows of earlier runs without Spark: the table of changes, of this version and of
earlier ones."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirrorlake.control.acl_plan import AclChange, owned_acls
from mirrorlake.lake.changes import Change
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.event_log import WrittenChanges
from tests.support.acls import acl

FLOW = "east->west"
MADE, GONE = AclChange("create", acl("east.a")), AclChange("create", acl("east.b"))


@pytest.mark.parametrize("older", [False, True])
def test_what_was_made_is_read_from_the_files(tmp_path: Path, older: bool) -> None:
    now = datetime.now(timezone.utc)
    changes = [
        AclChange("delete", GONE.acl).row(),
        GONE.row(None, "default"),
        MADE.row(None, "default"),
    ]
    rows = [
        {"flow": FLOW, "at": now - timedelta(seconds=ago), **vars(row)}
        for ago, row in enumerate(changes)
    ]
    rows.append({**rows[2], "flow": "west->east"})
    rows.append({**rows[2], **vars(Change("config", "east.a", None, "x"))})
    table = pa.Table.from_pylist(rows)
    write_deltalake(str(tmp_path / "changes"), table.drop_columns(["policy"]) if older else table)
    owned = owned_acls(WrittenChanges(DuckLake(tmp_path)).history(FLOW, "acl"))
    assert owned == {MADE.acl: None if older else "default"}


def test_a_lake_that_is_not_there_has_no_history_and_is_not_made(tmp_path: Path) -> None:
    assert (
        WrittenChanges(DuckLake(tmp_path / "lake")).history(FLOW, "acl")
        == ()
        == WrittenChanges(None).history(FLOW, "acl")
    )
    assert not list(tmp_path.iterdir())
