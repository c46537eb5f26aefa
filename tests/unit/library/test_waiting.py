"""A run may begin before its topology file is there."""

from pathlib import Path
from threading import Event

import pytest

from mirrorlake.errors import ReplicationError
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


def test_it_says_so_again_each_hour(tmp_path: Path) -> None:
    hours = 5
    said: list[str] = []
    assert not wait_for_topology(
        tmp_path / "x.yml", Clock({int(hours * SAY_SECONDS / LOOK_SECONDS): "stop"}), said.append
    )
    assert len(said) == hours


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
