"""A topic whose mirror was renamed may have partitions that each mirror had last: the configs of
all of them decide what is excused."""

from pathlib import Path

import pytest

from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, write_file
from tests.support.verify_scopes import scope_of


@pytest.mark.parametrize("renamed", [0, 1])
def test_the_configs_of_each_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    """Of the later name, and of the former one where a partition had nothing since."""
    file = write_file(tmp_path, flows={FLOW: {"delivery": "at_least_once"}})
    lake, topology = opened(no_session, file)
    names = {renamed: "east.orders", 1 - renamed: "former.orders"}
    rows = [run_row(0, 9, partition=n, target_partition=n, target_topic=names[n]) for n in (0, 1)]
    append(lake, "offset_map", rows)
    asked: list[str] = []
    scope_of(lake, topology, monkeypatch, asked)
    assert {"east.orders", "former.orders"} <= set(asked)
