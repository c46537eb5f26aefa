"""`translate` calls exact only what is of a log that the source has still, as far as the lake
knows."""

from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mirrorlake
from mirrorlake.cli.main import app
from mirrorlake.errors import ReplicationError
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.incidents import Incident, IncidentKey, Incidents
from mirrorlake.lake.lake import Lake
from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, write_file
from tests.support.object_store import KEY, SECRET, Store
from tests.support.store_link import link_to

AT, MIRROR = ("orders", 0, 5), ("east.orders", 0, 5)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One with ten records of orders-0 in the map."""
    made = opened(no_session, write_file(tmp_path))[0]
    append(made, "offset_map", [run_row(0, 9)])
    begin(made, 0)
    return made


def begin(lake: Lake, generation: int, **of_partition: int) -> None:
    row = {
        "source_cluster": "east",
        "topic": "orders",
        "generation": generation,
        "topic_id": str(generation),
        "started_at": datetime.now(timezone.utc),
        **of_partition,
    }
    lake.append("generations", rows_of("generations", [row]))


def told(directory: Path) -> list[tuple[int, bool, str]]:
    """What is said of a position there, and of its counterpart back."""
    lake = mirrorlake.open(directory / "mirrorlake.yml")
    said = []
    for place, reverse in ((AT, False), (MIRROR, True)):
        position = lake.translate(FLOW, *place, reverse=reverse)
        assert lake.translate_all(FLOW, [place], reverse=reverse) == {place: position}
        assert position.exact == (position.reason is None)
        said.append((position.offset, position.exact, position.reason or ""))
    return said


def test_a_topic_that_was_made_again_has_no_exact_positions_until_it_is_decided(
    lake: Lake, tmp_path: Path
) -> None:
    assert told(tmp_path) == [(5, True, ""), (5, True, "")]
    incidents = Incidents(lake)
    # by whichever flow it was noticed
    key = IncidentKey("east->north", "topic_recreated", "orders")
    error = ReplicationError("planted", topic="orders")
    incidents.report([Incident(key.flow, key.kind, error)])
    for choice in (None, "stop"):
        if choice is not None:
            incidents.settle_all([key], choice)
        for offset, exact, reason in told(tmp_path):
            assert (offset, exact) == (5, False), "history is told, and is no promise"
            assert "topic orders: it was made again at cluster east" in reason
    command = ["-c", str(tmp_path / "mirrorlake.yml"), "translate", "--flow", FLOW]
    place = ["--topic", "orders", "--partition", "0", "--offset", "5"]
    assert "(topic orders: it was made again" in CliRunner().invoke(app, [*command, *place]).output


def test_what_a_decision_has_put_behind_is_history(lake: Lake, tmp_path: Path) -> None:
    begin(lake, 1)
    (_, exact, reason), (offset, back, why) = told(tmp_path)
    assert not exact and "not replicated yet" in reason, "nothing of the new log is mirrored"
    assert (offset, back) == (5, False) and "a log that is gone" in why


@pytest.mark.parametrize(("first", "exact"), [(4, False), (5, True)])
def test_a_log_that_went_back_is_another_one_behind_that(
    lake: Lake, tmp_path: Path, first: int, exact: bool
) -> None:
    error = ReplicationError(
        "planted", topic="orders", partition=0, first_offset=first, last_offset=9
    )
    Incidents(lake).report([Incident(FLOW, "source_rewound", error)])
    assert [(offset, sure) for offset, sure, _ in told(tmp_path)] == [(5, exact)] * 2
    assert all(exact or "orders-0: its log went back" in reason for *_, reason in told(tmp_path))
    begin(lake, 1, partition=0, first_offset=first)
    assert [sure for _, sure, _ in told(tmp_path)] == [exact] * 2, "nothing is mirrored of it yet"


def test_a_store_is_asked_for_each_thing_once(
    object_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reasons are read of the tables as they were when the position was translated."""
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = write_file(tmp_path)
    with link_to(object_store.address) as link:
        Store(link.address).hold(file, "translated")
        made = opened(no_session, file)[0]
        append(made, "offset_map", [run_row(0, 9)])
        lake, before = mirrorlake.open(file), len(link.requests)
        assert lake.translate(FLOW, *AT).exact
        asked = Counter((each.kind, each.key) for each in link.requests[before:])
    assert {what: times for what, times in asked.items() if times > 1 or what[0] == "HEAD"} == {}
