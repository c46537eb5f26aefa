"""What the opening of a lake asks of an object store: nothing that is known already."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import ReplicationError
from mirrorlake.lake.changes import Change
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import IncidentKey
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from tests.support.lake_rows import no_session
from tests.support.object_store import KEY, SECRET, Store
from tests.support.store_link import Request, StoreLink, link_to


@pytest.fixture
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


@pytest.fixture
def location(link: StoreLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    monkeypatch.setenv(KEY, SECRET)
    document = Store(link.address).lake(tmp_path.name)
    return Location.model_validate({**document, "checkpoints": str(tmp_path / "checkpoints")})


def opened(location: Location, directory: Path) -> Lake:
    return open_lake(no_session, location, directory)


def looked_for(requests: list[Request]) -> int:
    """How often it was looked whether a table is there."""
    return sum(request.kind == "HEAD" and "_delta_log" in request.key for request in requests)


def test_a_lake_that_is_not_there_is_looked_for_once(
    link: StoreLink, location: Location, tmp_path: Path
) -> None:
    opened(location, tmp_path)
    first_put = next(at for at, each in enumerate(link.requests) if each.kind == "PUT")
    assert [request.kind for request in link.requests[:first_put]] == ["LIST"]
    known = len(link.requests)
    opened(location, tmp_path)
    assert looked_for(link.requests[known:]) == len(TABLES), "each by one request"


def test_what_is_noted_once_more_asks_for_its_commit_alone(
    link: StoreLink, location: Location, tmp_path: Path
) -> None:
    """When it was noted in last is known: files of the table are not read for it."""
    log = EventLog(opened(location, tmp_path))
    for outcome in ("done", "gone"):
        before = len(link.requests)
        log.record("east->west", [Change("topic", "t", outcome=outcome)])
    assert sorted(each.kind for each in link.requests[before:]) == ["GET", "PUT", "PUT"]


def test_an_incident_asks_for_what_came_since_the_one_before_alone(
    link: StoreLink, location: Location, tmp_path: Path
) -> None:
    """However many there are. What an operator decided on another host is no more open: it is told
    once more."""
    here, there = (
        EventLog(opened(location, tmp_path / name)).incidents for name in ("here", "there")
    )
    asked = []
    for number in range(12):
        error = ReplicationError("planted", topic=f"t{number}")
        before = len(link.requests)
        here.open("east->west", "topic_refused", error)
        asked.append(len(link.requests) - before)
        if number == 6:
            there.settle_all([IncidentKey("east->west", "topic_refused", "t0")], "acknowledge")
            here.open("east->west", "topic_refused", ReplicationError("planted", topic="t0"))
    assert max(asked[2:]) <= 10, asked
    assert len(here._lake.ask_table("open_incidents")) == 12
