"""A run may begin before its topology file is there."""

import os
from pathlib import Path
from threading import Event

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ReplicationError, TopologyError
from mirrorlake.library.waiting import LOOK_SECONDS, SAY_SECONDS, wait_for_topology


class Clock(Event):
    """Stands for the event that ends a run: time goes by when it is waited for; `events` says what
    happens when."""

    def __init__(self, events: dict[int, object]) -> None:
        super().__init__()
        self.looks = 0
        self._events = events

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout == LOOK_SECONDS
        self.looks += 1
        what = self._events.get(self.looks)
        if isinstance(what, Path):
            what.write_text("clusters: {}", encoding="utf-8")
        elif what == "stop":
            self.set()
        return self.is_set()


def test_a_file_that_is_there_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "mirrorlake.yml"
    file.write_text("clusters: {}", encoding="utf-8")
    said: list[str] = []
    assert wait_for_topology(file, Clock({}), said.append)
    assert said == []


def test_it_says_once_what_it_waits_for_and_that_it_came(tmp_path: Path) -> None:
    file, said = tmp_path / "mirrorlake.yml", list[str]()
    stop = Clock({40: file})
    assert wait_for_topology(file, stop, said.append)
    assert stop.looks == 40
    assert said == [
        f"waiting for the topology file {file}: looking for it every 10 s",
        f"the topology file {file} is there",
    ]


def test_it_says_so_again_and_again(tmp_path: Path) -> None:
    times = 5
    said: list[str] = []
    assert not wait_for_topology(
        tmp_path / "x.yml", Clock({int(times * SAY_SECONDS / LOOK_SECONDS): "stop"}), said.append
    )
    assert len(said) == times and SAY_SECONDS <= 600


def test_a_file_of_another_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "mirrorlake.yaml").touch()
    said: list[str] = []
    wait_for_topology(tmp_path / "mirrorlake.yml", Clock({1: "stop"}), said.append)
    assert "(its folder has mirrorlake.yaml)" in said[0]


@pytest.mark.parametrize("below", ["notes.txt/mirrorlake.yml", "pipe"])
def test_what_cannot_become_a_file_is_not_waited_for(tmp_path: Path, below: str) -> None:
    """Its reader refuses it, or, as a shell's `<(...)`, reads it: it has no size."""
    (tmp_path / "notes.txt").touch()
    os.mkfifo(tmp_path / "pipe")
    file = tmp_path / below
    assert wait_for_topology(file, Clock({1: "stop"}), lambda _line: None)
    if below != "pipe":
        with pytest.raises(TopologyError, match="Not a directory"):
            load_topology(file)


def test_it_ends_when_told_to(tmp_path: Path) -> None:
    assert not wait_for_topology(
        tmp_path / "mirrorlake.yml", Clock({1: "stop"}), lambda _line: None
    )


def test_a_file_without_content_is_being_written(tmp_path: Path) -> None:
    file = tmp_path / "mirrorlake.yml"
    file.touch()
    stop = Clock({3: file})
    assert wait_for_topology(file, stop, lambda _line: None)
    assert stop.looks == 3


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    said: list[str] = []
    wait_for_topology(tmp_path / "typo" / "mirrorlake.yml", Clock({1: "stop"}), said.append)
    assert "whose folder is not there either" in said[0]


def test_a_file_that_cannot_be_looked_at_is_left_to_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_self: Path, **_more: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "stat", denied)
    assert wait_for_topology(tmp_path / "mirrorlake.yml", Clock({}), lambda _line: None)


def test_a_run_with_an_end_that_is_stopped_while_it_waits_is_not_done(tmp_path: Path) -> None:
    with pytest.raises(ReplicationError, match="stopped before it came to the ends") as raised:
        wait_for_topology(tmp_path / "m.yml", Clock({1: "stop"}), lambda _line: None, once=True)
    assert raised.value.exit_code == 1
