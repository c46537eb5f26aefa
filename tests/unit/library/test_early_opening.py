"""What `run` does of the lake while Spark starts."""

import threading
from pathlib import Path

import pytest

import mirrorlake
from mirrorlake.lake.folder import has_table
from mirrorlake.lake.place import place_of
from mirrorlake.library import replicating
from mirrorlake.library.internals import Internals
from tests.support.lake_rows import write_file


def test_a_new_lake_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    class Starting:
        began = 0.0

        def begin(self) -> None:
            assert not made

        def ready(self, _stop: threading.Event) -> bool:
            made.append(has_table(place_of(tmp_path / "lake"), "starts"))
            return False  # the run was stopped meanwhile

    monkeypatch.setattr(Internals, "later_session", lambda _known: Starting())
    monkeypatch.setattr(replicating, "judge", lambda *_asked: None)
    (row,) = mirrorlake.open(write_file(tmp_path)).run(reader="rows")  # which waits for Spark
    assert row["records"] == 0 and made == [True]
