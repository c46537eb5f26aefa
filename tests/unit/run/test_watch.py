"""An edit of the topology file is noticed by content, waits where it has to, and is never taken as
known meanwhile."""

from pathlib import Path

import pytest

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import TopologyError
from mirrorlake.run.edits import RETRY_SECONDS, TopologyWatch

FILE = """\
clusters: {east: {bootstrap_servers: "127.0.0.1:1"}, west: {bootstrap_servers: "127.0.0.1:2"}}
lake: {path: ./lake}
flows: {east->west: {topics: [%s]}}
"""


class Edits:
    """A topology file that is edited, and a watch with a clock of its own."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "mirrorlake.yml"
        self.now = 0.0
        self.write("a")
        self.watch = TopologyWatch(self.path, load_topology(self.path), lambda: self.now)

    def write(self, topic: str) -> None:
        """An edit."""
        self.path.write_text(FILE % topic, encoding="utf-8")

    def wait(self) -> None:
        """An edit that cannot be followed yet."""
        self.write("b")
        waiting = self.watch.edited()
        assert waiting is not None
        self.watch.wait(waiting)

    def seen(self) -> str | None:
        """The topic of the edit that the watch gives."""
        preflight = self.watch.edited()
        return None if preflight is None else topic_of(preflight)


def topic_of(topology: Topology) -> str:
    """The one topic that the file names."""
    return topology.flow("east->west").settings.topics[0]


@pytest.fixture
def edits(tmp_path: Path) -> Edits:
    """A file that names topic a, which is in force."""
    return Edits(tmp_path)


def test_an_edit_is_given_once(edits: Edits) -> None:
    assert edits.seen() is None
    edits.write("b")
    assert edits.seen() == "b" and not edits.watch.again
    edits.watch.done()
    edits.now += 10 * RETRY_SECONDS
    assert edits.seen() is None
    edits.write("a")
    assert edits.seen() == "a"


def test_an_edit_between_the_start_and_the_first_poll_is_one(edits: Edits) -> None:
    edits.write("b")
    assert edits.seen() == "b"


def test_an_edit_that_waits_comes_again_until_it_is_in_force(edits: Edits) -> None:
    edits.write("b")
    waiting = edits.watch.edited()
    assert waiting is not None
    for _ in range(3):
        edits.watch.wait(waiting)
        assert edits.seen() is None
        edits.now += RETRY_SECONDS
        assert edits.seen() == "b" and edits.watch.again
    edits.watch.done()
    edits.now += RETRY_SECONDS
    assert edits.seen() is None


def test_a_newer_edit_takes_the_place_of_one_that_waits(edits: Edits) -> None:
    edits.wait()
    edits.write("c")
    assert edits.seen() == "c" and not edits.watch.again


def test_an_invalid_edit_is_told_once_and_ends_the_waiting(edits: Edits) -> None:
    edits.wait()
    edits.write("[")
    with pytest.raises(TopologyError):
        edits.watch.edited()
    edits.now += RETRY_SECONDS
    assert edits.seen() is None


def test_an_edit_that_could_not_be_read_is_one_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever reading it ended with, as too many open files do: only what a file says settles what
    it is."""
    path = tmp_path / "mirrorlake.yml"
    path.write_text(FILE % "a", encoding="utf-8")
    watch = TopologyWatch(path, load_topology(path))
    assert watch.edited() is None
    path.write_text(FILE % "b", encoding="utf-8")

    def breaks(_path: Path) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("mirrorlake.run.edits.load_topology", breaks)
        with pytest.raises(OSError, match="Too many"):
            watch.edited()
    preflight = watch.edited()
    assert preflight is not None and preflight.flows["east->west"].topics == ("b",)
