"""Figures that pages say in prose are those of the code."""

import re

import pytest

from mirrorlake.control.acl_plan import MAX_WRITTEN_OUT
from mirrorlake.dashboard.data import MAX_ROWS
from mirrorlake.failover.drain import OPEN_SECONDS, WAIT_SECONDS
from mirrorlake.groups.mover import STEP_GROUPS
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.groups_worker import BUDGET_SECONDS, GROUPS_AT_ONCE
from mirrorlake.kafka.renewal import SECRETS_SECONDS
from mirrorlake.lake.map_store import ROWS_WAIT_SECONDS, SESSION_ROWS_WAIT_SECONDS
from mirrorlake.lake.old_commits import KEPT, MOST_COMMITS
from mirrorlake.lake.other_writers import NEWEST
from mirrorlake.lake.store_lock import DEAD_SECONDS, RENEW_SECONDS
from mirrorlake.landing.excluded import WAIT_SECONDS as REFUSED_WAITS
from mirrorlake.landing.land import SESSION_TRIGGER_SECONDS, TRIGGER_SECONDS
from mirrorlake.library.waiting import LOOK_SECONDS, SAY_SECONDS
from mirrorlake.migrate.migration import WAIT_SECONDS as COPY_SECONDS
from mirrorlake.migrate.syncs import LOOK_BACK, MARGIN
from mirrorlake.offsets.as_of import PATIENCE_MS
from mirrorlake.offsets.runs import MAX_SEGMENTS
from mirrorlake.run.group_member import HEARTBEAT_SECONDS, POLL_LIMIT_SECONDS, SESSION_SECONDS
from mirrorlake.run.plan_groups import MOST_GROUPS
from mirrorlake.verify.job import MAX_LISTED
from mirrorlake.verify.outcome import MOST_ROWS
from mirrorlake.verify.plan import RANGE_OFFSETS
from tests.support.commands import ROOT

WORDS = {2: "two", 4: "four", 5: "five", 10: "ten"}


def word(number: float, unit: int = 1) -> str:
    """A number, of units of so many, as a page writes small ones."""
    return WORDS[round(number / unit)]


#: What pages say in prose, by page.
SAID = {
    "capacity.md": [f"of more than {MOST_GROUPS} groups it asks {MOST_GROUPS}"],
    "dashboard.md": [f"at most {MAX_ROWS:,} rows"],
    "databricks.md": [
        f"repeats it every {word(SAY_SECONDS, 60)} minutes",
        f"run continues within {word(LOOK_SECONDS)} seconds",
    ],
    "failover.md": [
        f"steps of {STEP_GROUPS} groups",
        f"asks {GROUPS_AT_ONCE} groups side by side, {ANSWER_SECONDS:.0f} s for each and "
        f"{BUDGET_SECONDS:.0f} s to begin",
        f"that one for {word(WAIT_SECONDS, 60)} minutes at most",
        f"open on `east` for {word(OPEN_SECONDS)} seconds more",
    ],
    "high_availability.md": [
        f"| session | {SESSION_SECONDS:.0f} s |",
        f"| heartbeat | {HEARTBEAT_SECONDS:.0f} s |",
        f"| no poll | {POLL_LIMIT_SECONDS:.0f} s |",
    ],
    "incidents.md": [
        "else after {:.0f} s, {:.0f} s, {:.0f} min, then every {:.0f} min".format(
            *REFUSED_WAITS[:2], *(seconds / 60 for seconds in REFUSED_WAITS[2:])
        )
    ],
    "metrics.md": [
        f"in an object store up to {word(ROWS_WAIT_SECONDS)} seconds, in a catalog up to "
        f"{word(SESSION_ROWS_WAIT_SECONDS)}"
    ],
    "migrate.md": [
        f"waits for up to {COPY_SECONDS:.0f} s",
        f"at least {MARGIN:,} records in front",
        f"{LOOK_BACK:,} records in front of the position",
    ],
    "object_stores.md": [
        f"renewed every {RENEW_SECONDS:.0f} s",
        f"after {word(DEAD_SECONDS, 60)} minutes on another",
        f"the newest {word(NEWEST)} commits of each table",
    ],
    "operate.md": [
        f"wait up to {word(WAIT_SECONDS, 60)} minutes",
        f"rows of up to {MAX_SEGMENTS:,} segments",
    ],
    "restore.md": [f"overlap for more than {word(PATIENCE_MS, 60_000)} minutes"],
    "security.md": [f"every {word(SECRETS_SECONDS, 60)} minutes"],
    "settings.md": [f"at most {MAX_WRITTEN_OUT:,} of them a flow"],
    "trust.md": [
        f"at most {RANGE_OFFSETS:,} source offsets",
        f"at most {MAX_LISTED} differences are listed",
        f"the newest {MOST_ROWS:,} ranges",
    ],
}


def page(name: str) -> str:
    """A page, with its lines joined."""
    return re.sub(r"\s+", " ", (ROOT / "docs" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_is_so(name: str) -> None:
    assert [sentence for sentence in SAID[name] if sentence not in page(name)] == []


def test_how_often_a_batch_begins() -> None:
    every = f"a batch every {TRIGGER_SECONDS * 1_000:.0f} ms (`landing.trigger_ms`; in a catalog"
    assert f"{every} {SESSION_TRIGGER_SECONDS} s)" in page("capacity.md")
    assert f"a batch every {SESSION_TRIGGER_SECONDS} seconds" in page("databricks.md")


def test_for_how_long_a_stream_may_rest() -> None:
    text = page("downstream.md")
    hours = int(MOST_COMMITS * TRIGGER_SECONDS / 3_600)
    a_minute = int(MOST_COMMITS / (KEPT.total_seconds() / 60))
    assert (
        f"{KEPT.days} days, and of a busy table less: the newest {MOST_COMMITS:,} commits" in text
    )
    assert f"which may be {hours} hours" in text and f"they are {hours} hours" in text
    assert f"gets at most {a_minute} a minute" in text
    assert round(1 / TRIGGER_SECONDS) == 3 and "up to three a second" in text
