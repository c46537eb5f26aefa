"""Notebooks that change something fail where that does not end well: a schedule would not notice
otherwise."""

from pathlib import Path
from typing import cast

import pytest

from mirrorlake.errors import InputError, MirrorlakeError, ReplicationError
from mirrorlake.notebook import command, drill
from mirrorlake.notebook.drill import Drill
from mirrorlake.notebook.host import Host, Notebook
from tests.support.lake_rows import write_file


@pytest.mark.parametrize(
    ("given", "raised", "words"),
    [
        ("status", ReplicationError, "exit code 1, the replication needs attention"),
        ("no-such", InputError, "exit code 2, it was not done: there is no command no-such"),
        ("version", None, "exit code 0"),
    ],
)
def test_it_says_and_raises_it(
    tmp_path: Path, given: str, raised: type[MirrorlakeError] | None, words: str
) -> None:
    file, host = write_file(tmp_path), cast(Host, None)
    ended = command.run(Notebook(host, {"topology": str(file), "command": given, "arguments": ""}))
    if raised is None:
        assert command.checked(ended).startswith(words)
        return
    with pytest.raises(raised, match=words):
        command.checked(ended)


def test_a_failover_that_was_carried_out_and_left_something_is_no_success() -> None:
    drill.check(Drill([], ["left: group billing"]))
    with pytest.raises(ReplicationError, match="not complete: group billing"):
        drill.check(Drill([], [], left=("group billing", "group audit")))
