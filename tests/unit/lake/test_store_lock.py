"""A lease in an object store is had by one process at a time, renewed while it works, and free when
it is given back, or when its process is gone."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, cast

import pytest

from mirrorlake.errors import LakeError, LeaseTaken
from mirrorlake.lake import store_lock
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.lease_holder import LeaseState
from mirrorlake.lake.place import FolderPlace, Place, place_of
from mirrorlake.lake.renewed_options import NotLent
from mirrorlake.lake.store_lock import StoreLock
from tests.support.object_store import Store
from tests.support.store_link import Fault, Request, StoreLink, link_to
from tests.support.waiting import until

WHAT = "flow a->b"


@pytest.fixture(scope="module")
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


@pytest.fixture
def place(link: StoreLink, request: pytest.FixtureRequest) -> Place:
    """Where the leases of a lake are."""
    return Store(link.address).place(re.sub(r"\W", "-", request.node.name))


def lease_at(place: Place) -> Lease:
    return Lease(cast(Lake, SimpleNamespace(leases=place)), WHAT)


def folder(place: Place) -> Place:
    return place / "flow-a--b"


def noted(host: str, pid: int, renewed: float) -> bytes:
    holder = {"host": host, "pid": pid, "since": "2026-01-01T00:00:00+00:00"}
    return json.dumps({**holder, "renewed": renewed}).encode()


def test_one_has_it_and_renews_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_lock, "RENEW_SECONDS", 0.05)
    lease = lease_at(place)
    for _ in range(2):  # one that is taken again is renewed, too
        lease.take()
        (name,) = folder(place).names()
        first = (folder(place) / name).read()
        until(lambda name=name, first=first: (folder(place) / name).read() != first, "renewed")
        with pytest.raises(LeaseTaken, match=f"{WHAT} is held by process {os.getpid()} on "):
            lease_at(place).take(sure=True)
        holder = lease_at(place).lock.holder()
        assert holder is not None and holder.is_this_process
        assert lease_at(place).lock.state() == LeaseState(is_free=False)
        lease.release()
        assert lease_at(place).lock.holder() is None
        assert lease_at(place).lock.state() == LeaseState(is_free=True)
        with pytest.raises(FileNotFoundError):
            (folder(place) / name).read()
        lease.release()


def test_one_of_a_process_that_is_gone_is_free(place: Place) -> None:
    """Seen at once on its host; of another one, by its not being renewed."""
    object_of_another = folder(place) / "5"
    object_of_another.write(noted("elsewhere", 7, time.time()))
    with pytest.raises(LeaseTaken, match="process 7 on elsewhere since"):
        lease_at(place).take()
    object_of_another.write(noted("elsewhere", 7, time.time() - store_lock.DEAD_SECONDS - 1))
    lease = lease_at(place)
    lease.take()
    assert folder(place).names() == ["6"], "behind the other's, which is gone"
    lease.release()
    here = os.uname().nodename
    (folder(place) / "9").write(noted(here, 2**22 - 1, time.time()))
    lease_at(place).take()


def test_one_whose_answer_was_lost_is_had(link: StoreLink, place: Place) -> None:
    faults: list[Fault] = ["torn"]
    link.fault = lambda asked: faults.pop() if faults and is_put(asked) else None
    lease = lease_at(place)
    lease.take()
    assert not faults
    lease.release()
    link.fault = lambda asked: "expired"
    try:
        with pytest.raises(LakeError, match=f"{WHAT} cannot be taken in the lake's store: "):
            lease.take()
        with pytest.raises(LakeError, match=f"who has {WHAT} cannot be read in the lake's store: "):
            lease.lock.holder()
    finally:
        link.fault = lambda _asked: None


def test_one_that_could_not_be_given_back_is_free_all_the_same(
    link: StoreLink, place: Place
) -> None:
    """To this process, whoever asks in it, and to any other once this one has ended."""
    lease, other = lease_at(place), lease_at(place)
    lease.take()
    # refused at once: a 503 is tried again for five seconds
    link.fault = lambda request: "expired" if request.kind in ("DELETE", "POST") else None
    try:
        lease.release()
        lease.take()
        with pytest.raises(LeaseTaken):
            other.take()
        lease.release()
        other.take()
    finally:
        link.fault = lambda _asked: None
    with pytest.raises(LeaseTaken):
        lease.take()
    other.release()
    assert len(folder(place).names()) <= 2


def test_one_of_a_process_before_that_had_the_same_number_is_free(place: Place) -> None:
    """As in a container that was started again: its name and its first process are the same."""
    (folder(place) / "3").write(noted(os.uname().nodename, os.getpid(), time.time()))
    lease_at(place).take(sure=True)


class Borrowed(FolderPlace):
    """A place that is reached by credentials that are lent; not always."""

    lends = True

    def _check(self) -> None:
        if not self.lends:
            raise NotLent("no credentials are lent")

    def read(self) -> bytes:
        self._check()
        return super().read()

    def write(self, content: bytes) -> None:
        self._check()
        super().write(content)

    def delete(self) -> None:
        self._check()
        super().delete()


@pytest.fixture
def borrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLock:
    """A lease at such a place, of this process, renewed each moment."""
    monkeypatch.setattr(store_lock, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(store_lock, "AGAIN_SECONDS", 0.02)
    lock = StoreLock(WHAT, Borrowed(tmp_path))
    lock.take(sure=False)
    return lock


def test_one_is_renewed_once_credentials_are_lent_again(
    borrowed: StoreLock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else another host takes it for free some minutes later, while this process works on."""
    with monkeypatch.context() as away:
        away.setattr(Borrowed, "lends", False)
        until(lambda: "could not be renewed: no credentials" in caplog.text, "it is tried")
    before = (tmp_path / "0").read_bytes()
    until(lambda: (tmp_path / "0").read_bytes() != before, "renewed")
    borrowed.release()


class Panic(BaseException):
    """As a library in Rust raises it."""


def test_one_is_renewed_whatever_ended_the_attempt_before(
    borrowed: StoreLock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else renews it, and nothing would say so."""
    panics: list[Panic] = []

    def panic(_self: Borrowed) -> None:
        panics.append(Panic())
        raise panics[-1]

    with monkeypatch.context() as broken:
        broken.setattr(Borrowed, "_check", panic)
        until(lambda: len(panics) > 1, "it is tried again")
    before = (tmp_path / "0").read_bytes()
    until(lambda: (tmp_path / "0").read_bytes() != before, "renewed")
    borrowed.release()


def test_one_that_another_process_took_is_held_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where this one was suspended for minutes: who works by it ends, and does not go on beside
    the other one."""
    monkeypatch.setattr(store_lock, "RENEW_SECONDS", 0.05)
    lease = lease_at(place)
    lease.take()
    assert lease.held
    other = folder(place) / "1"
    other.write(noted("elsewhere", 7, time.time()))
    until(lambda: not lease.held, "it is seen")
    lease.release()
    other.delete()
    lease.take()
    assert lease.held
    lease.release()


@pytest.mark.parametrize("holds", [(), (2,)], ids=["gave it back", "was followed by another one"])
def test_one_that_another_process_had_meanwhile_is_held_no_more(
    borrowed: StoreLock, tmp_path: Path, holds: tuple[int, ...]
) -> None:
    """Who takes one deletes what was before it: to renew that would make it there again, and two
    processes would have the lease for as long as they work."""
    with borrowed._renewing:  # as where this process is suspended
        (tmp_path / "0").unlink()
        for number in holds:
            (tmp_path / str(number)).write_bytes(noted("elsewhere", 7, time.time()))
    until(lambda: not borrowed.held, "it is seen")
    assert sorted(each.name for each in tmp_path.iterdir()) == [str(number) for number in holds]
    borrowed.release()


@pytest.mark.parametrize("renews", [True, False])
def test_one_whose_number_another_process_made_again_is_that_ones(
    borrowed: StoreLock, tmp_path: Path, renews: bool
) -> None:
    """A second one took the next number, deleted this one, and gave its own back; a third one began
    at this number again. To renew that, or to delete it, took the lease from the third."""
    third = noted("elsewhere", 7, time.time())
    with borrowed._renewing:  # as where this process is suspended
        (tmp_path / "0").write_bytes(third)
        if not renews:
            borrowed._ended.set()  # it ends at once when it goes on
    if renews:
        until(lambda: not borrowed.held, "it is seen")
    borrowed.release()
    assert (tmp_path / "0").read_bytes() == third


def test_one_that_was_given_back_while_no_credentials_were_lent_is_free(
    borrowed: StoreLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To this process, which would else wait for itself for ever."""
    with monkeypatch.context() as away:
        away.setattr(Borrowed, "lends", False)
        borrowed.release()
    borrowed.take(sure=False)
    borrowed.release()


class Crowded(FolderPlace):
    """A place at which something else happens before a file is made, or replaced, as where this
    process is suspended then."""

    before_create: ClassVar[list[Callable[[], object]]] = []
    before_write: ClassVar[list[Callable[[], object]]] = []

    def create(self, content: bytes) -> None:
        while self.before_create:
            self.before_create.pop()()
        super().create(content)

    def write(self, content: bytes) -> None:
        while self.before_write:
            self.before_write.pop()()
        super().write(content)


@pytest.mark.parametrize("number", [0, 5])
def test_one_that_was_taken_and_given_back_meanwhile_and_begun_anew_is_not_had(
    tmp_path: Path, number: int
) -> None:
    """A process that was gone left an object. Another one took the lease, deleted that, and gave
    the lease back; a third one began at 0 again, and keeps it."""
    gone, third = (noted("elsewhere", pid, at) for pid, at in ((7, 0.0), (8, time.time())))
    (tmp_path / str(number)).write_bytes(gone)

    def meanwhile() -> None:
        (tmp_path / str(number)).unlink()
        (tmp_path / "0").write_bytes(third)

    Crowded.before_create.append(meanwhile)
    with pytest.raises(LeaseTaken, match="process 8 on elsewhere"):
        StoreLock(WHAT, Crowded(tmp_path)).take(sure=True)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"0": third}


def test_one_that_another_thread_takes_meanwhile_is_that_ones(tmp_path: Path) -> None:
    first = StoreLock(WHAT, FolderPlace(tmp_path))
    Crowded.before_create.append(lambda: first.take(sure=True))
    with pytest.raises(LeaseTaken, match=f"process {os.getpid()}"):
        StoreLock(WHAT, Crowded(tmp_path)).take(sure=True)
    assert [each.name for each in tmp_path.iterdir()] == ["0"]
    with pytest.raises(LeaseTaken):
        StoreLock(WHAT, FolderPlace(tmp_path)).take(sure=True)
    first.release()
    assert [*tmp_path.iterdir()] == []


def test_one_below_the_object_of_a_process_that_died_is_had(tmp_path: Path) -> None:
    """As where that had made its object, and died before it saw the other one's."""
    (tmp_path / "0").write_bytes(noted("elsewhere", 7, time.time()))
    (tmp_path / "6").write_bytes(noted("elsewhere", 8, 0.0))
    lock = StoreLock(WHAT, FolderPlace(tmp_path))
    with pytest.raises(LeaseTaken, match="process 7 on elsewhere"):
        lock.take(sure=True)
    assert lock.state() == LeaseState(is_free=False)


def test_one_that_is_taken_while_it_is_renewed_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_lock, "RENEW_SECONDS", 0.02)

    def taken() -> None:
        (tmp_path / "1").write_bytes(noted("elsewhere", 7, time.time()))
        (tmp_path / "0").unlink()

    Crowded.before_write.append(taken)
    lock = StoreLock(WHAT, Crowded(tmp_path))
    lock.take(sure=True)
    until(lambda: not lock.held, "it is seen")
    assert [each.name for each in tmp_path.iterdir()] == ["1"]
    lock.release()


@pytest.mark.parametrize("third", [None, noted("elsewhere", 8, time.time())], ids=["gone", "made"])
def test_one_that_is_no_longer_the_one_that_was_read_is_not_replaced(
    link: StoreLink, place: Place, monkeypatch: pytest.MonkeyPatch, third: bytes | None
) -> None:
    """Between this process's reading and writing a second one took the lease, and gave it back; a
    third one may have begun at its number again: two processes had it then."""
    monkeypatch.setattr(store_lock, "RENEW_SECONDS", 0.05)
    lease = lease_at(place)
    lease.take()
    (name,) = folder(place).names()
    mine = folder(place) / name
    meanwhile = [mine.delete if third is None else partial(mine.write, third)]

    def meet(asked: Request) -> None:
        if is_put(asked) and str(mine).endswith(asked.key) and meanwhile:
            meanwhile.pop()()

    link.fault = meet
    try:
        until(lambda: not lease.held, "it is seen")
    finally:
        link.fault = lambda _asked: None
    lease.release()
    assert not meanwhile and folder(place).names() == ([] if third is None else [name])
    assert third is None or mine.read() == third


def is_put(request: Request) -> bool:
    return request.kind == "PUT"


def test_the_folder_of_a_lease_has_its_name(tmp_path: Path) -> None:
    lease_at(place_of(tmp_path)).take()
    assert [each.name for each in tmp_path.iterdir()] == ["flow-a--b.lock"]
