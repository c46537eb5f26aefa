"""A lease in a store of which a workspace lends the credentials: where it lends none for some time,
the lease is renewed once it does."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.lake import store_lock
from mirrorlake.lake.renewed_options import NotLent
from mirrorlake.lake.store_lock import StoreLock
from tests.support.waiting import until

WHAT = "flow a->b"


class Objects:
    """A folder of a store, or an object there; `refusal` is raised by what needs credentials."""

    def __init__(self, known: Any = None, name: str = "") -> None:
        self.known = known or SimpleNamespace(objects={}, refusal=None, refused=0)
        self._name = name

    def __truediv__(self, name: str) -> "Objects":
        return Objects(self.known, name)

    def __str__(self) -> str:
        return f"{id(self.known)}/{self._name}"

    def _ask(self) -> dict[str, bytes]:
        if self.known.refusal is not None:
            self.known.refused += 1
            raise self.known.refusal
        objects: dict[str, bytes] = self.known.objects
        return objects

    def names(self) -> list[str]:
        return list(self._ask())

    def read(self) -> bytes:
        if self._name not in self._ask():
            raise FileNotFoundError(self._name)
        return self._ask()[self._name]

    def read_marked(self) -> tuple[bytes, bytes]:
        return self.read(), self.read()

    def renew(self, content: bytes, mark: bytes) -> bool:
        if self.read() != mark:
            return False
        self.write(content)
        return True

    def create(self, content: bytes) -> None:
        self.write(content)

    def write(self, content: bytes) -> None:
        self._ask()[self._name] = content

    def delete(self) -> None:
        self._ask().pop(self._name, None)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(store_lock, "RENEW_SECONDS", 0.01)
    monkeypatch.setattr(store_lock, "AGAIN_SECONDS", 0.01)
    return Objects()


def test_it_is_renewed_once_credentials_are_lent_again(folder: Any) -> None:
    """The thread that renews it had ended, and another host took over what this process did."""
    lock = StoreLock(WHAT, folder)
    lock.take(sure=True)
    folder.known.refusal = NotLent("Unity Catalog lends no credentials")
    until(lambda: folder.known.refused > 3, "it is tried again")
    before = dict(folder.known.objects)
    folder.known.refusal = None
    until(lambda: folder.known.objects != before, "it is renewed")
    lock.release()
    assert folder.known.objects == {}


def test_one_that_could_not_be_given_back_is_free_to_this_process(folder: Any) -> None:
    lock = StoreLock(WHAT, folder)
    lock.take(sure=True)
    folder.known.refusal = NotLent("Unity Catalog lends no credentials")
    lock.release()
    folder.known.refusal = None
    lock.take(sure=True)
    lock.release()


def test_one_that_nothing_would_renew_is_not_had(
    folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the host has no thread more: this process took itself for another one that had it."""
    lock = StoreLock(WHAT, folder)

    def start(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as no_threads, pytest.raises(RuntimeError):
        no_threads.setattr(threading.Thread, "start", start)
        lock.take(sure=True)
    assert folder.known.objects == {}
    lock.take(sure=True)
    lock.release()
