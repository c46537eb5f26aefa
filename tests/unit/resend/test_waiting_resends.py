"""Replays and restores that have begun: what they have yet to send stays, until they have ended."""

from pathlib import Path

import pytest

from mirrorlake.config.lake import Maintenance
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.forgotten import resends_from
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.maintain import maintain
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.resend.note import Resend, ResentTopic, read_notes
from mirrorlake.resend.waiting import waiting_resends
from tests.support.lake_rows import (
    ago,
    append,
    commit,
    no_session,
    now_of,
    opened,
    run_row,
    staged,
    write_file,
)

DAY = 86_400
WEEK = Maintenance(retention_days=7)
PART = ResentTopic("orders", "orders", (StagedRange("east", "orders", 0, 0, 20, 59, 40),), (0,))
RESTORE = Resend(
    "restore",
    "20261127-1",
    source="east",
    target="west",
    target_id="id-of-west",
    request={"to": "west"},
    parts=(PART,),
)


def note(lake: Lake, changes: list[object], at: float) -> None:
    rows = [{**vars(change), "flow": RESTORE.name, "at": ago(at)} for change in changes]
    lake.append("changes", rows_of("changes", rows))


def first_offset(lake: Lake) -> int:
    return min(row["offset"] for row in now_of(lake).table_rows("records"))


def test_what_a_restore_has_yet_to_send_stays(tmp_path: Path) -> None:
    """The flow has all; the restore has sent 20 to 39 of 20 to 59, and was killed."""
    lake, topology = opened(no_session, write_file(tmp_path))
    commit(lake, "records", staged(range(100), 30 * DAY) + staged(range(9), 30 * DAY, partition=1))
    append(lake, "offset_map", [run_row(0, 99), run_row(0, 8, partition=1, target_partition=1)])
    note(lake, [*RESTORE.began()], 5)
    append(lake, "offset_map", [run_row(20, 39, flow=RESTORE.name, target_topic="orders")])

    held = maintain(lake, topology, WEEK, others=waiting_resends)["records"]["held"]

    assert [(row["flow"], row["partition"], row["offset"]) for row in held] == [
        (RESTORE.name, 0, 40)
    ]
    left = now_of(lake).table_rows("records")
    assert sorted(row["offset"] for row in left if row["partition"] == 0) == [*range(40, 100)]
    assert [row["offset"] for row in left if row["partition"] == 1] == [8], "it reads none of it"

    note(lake, [*RESTORE.given_up()], 4)
    assert maintain(lake, topology, WEEK, others=waiting_resends)["records"]["held"] == []
    assert first_offset(lake) == 8


@pytest.mark.parametrize("seconds", [0, 60])
def test_one_that_has_ended_has_ended_whatever_the_clock_said(
    tmp_path: Path, seconds: float
) -> None:
    """Who asks for the same again would go on with one that has sent all, and send nothing."""
    lake, _ = opened(no_session, write_file(tmp_path))
    note(lake, [*RESTORE.began()], 100)
    assert read_notes(lake.ask("resends", kind="restore")) == [RESTORE]
    assert resends_from(lake, "east") == [RESTORE.name] and not resends_from(lake, "west")
    note(lake, [*RESTORE.ended({"orders": 40})], 100 + seconds)  # set back meanwhile
    assert list(lake.ask("resends", kind="restore")) == [] == resends_from(lake, "east")
