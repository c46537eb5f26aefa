"""What a batch notes of logs that go on behind it is found by its own writers."""

from pathlib import Path

from mirrorlake.landing.open_ends import leave, left


def test_a_note_is_that_of_its_batch(tmp_path: Path) -> None:
    ends = {"größe": {"0": 5}}
    assert left(tmp_path, ends) is None
    leave(tmp_path, ends, "[]")
    assert left(tmp_path, ends) == "[]" and left(tmp_path, {"größe": {"0": 6}}) is None
    leave(tmp_path, {"größe": {"0": 6}}, None)
    assert left(tmp_path, ends) is None and left(tmp_path, {"größe": {"0": 6}}) is None
