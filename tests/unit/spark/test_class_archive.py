"""The archive of classes: no session waits for it; who asks for it goes on at once."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.spark import class_archive
from mirrorlake.spark.class_archive import BROKERS, SESSIONS, TABLES, Archive


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The processes that were started; none is. The environment of Python is an empty folder."""
    found: list[list[str]] = []

    def start(command: list[str], **how: Any) -> None:
        assert how["start_new_session"] and how["stderr"] == subprocess.DEVNULL
        found.append(command)

    monkeypatch.delenv(class_archive.VARIABLE, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(class_archive, "find_java", lambda: Path(sys.executable))
    monkeypatch.setattr(class_archive, "kafka_jars", lambda: [Path(sys.executable)])
    monkeypatch.setattr(class_archive, "cached_spark_jars", list)
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("nothing is waited for"))
    return found


def place(archive: Archive = SESSIONS) -> Path:
    return class_archive._place(archive, Path(sys.executable))


def test_a_session_takes_it_only_where_it_is(
    begun: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    java = Path(sys.executable)
    assert class_archive.archive_flags(SESSIONS, java) == []
    place().parent.mkdir(parents=True, exist_ok=True)
    place().touch()
    assert class_archive.archive_flags(SESSIONS, java) == [], "tried in vain"
    place().write_bytes(b"classes")
    assert class_archive.archive_flags(SESSIONS, java)[0] == f"-XX:SharedArchiveFile={place()}"
    monkeypatch.setenv(class_archive.VARIABLE, "off")
    assert class_archive.archive_flags(SESSIONS, java) == []
    assert not begun


def test_a_session_with_delta_has_its_own(
    begun: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's jars are fetched by the first session that needs them; till then there is none."""
    java = Path(sys.executable)
    assert TABLES not in class_archive._places()
    place().parent.mkdir(parents=True, exist_ok=True)
    place().write_bytes(b"classes")
    without = class_archive.archive_flags(SESSIONS, java)
    assert class_archive.archive_flags(TABLES, java) == without, "Spark's classes at least"
    monkeypatch.setattr(class_archive, "cached_spark_jars", lambda: [java])
    assert TABLES in class_archive._places()
    place(TABLES).write_bytes(b"classes")
    assert class_archive.archive_flags(TABLES, java)[0] == f"-XX:SharedArchiveFile={place(TABLES)}"
    assert class_archive.archive_flags(SESSIONS, java) == without


def test_it_is_made_behind_whoever_asks(
    begun: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    class_archive.make_behind(said.append)
    assert [command[1:] for command in begun] == [
        ["-m", class_archive.__name__, "--behind"]
    ] and len(said) == 1
    place().parent.mkdir(parents=True, exist_ok=True)
    place().write_bytes(b"classes")
    class_archive.make_behind(said.append)
    assert len(begun) == 2, "that of brokers is missing"
    place(BROKERS).touch()
    class_archive.make_behind(said.append)
    place().unlink()
    monkeypatch.setenv(class_archive.VARIABLE, "off")
    class_archive.make_behind(said.append)
    assert len(begun) == 2 and len(said) == 2


def test_nobody_asks_for_it_where_it_cannot_be_kept(
    begun: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    class_archive.make_behind(lambda _line: pytest.fail("nothing is said"))
    assert not begun


def test_a_machine_that_is_too_busy_now_is_tried_again(
    begun: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("java", 300)

    monkeypatch.setattr(subprocess, "run", too_long)
    class_archive.make()
    assert not begun and not list(place().parent.glob("*.jsa*"))
