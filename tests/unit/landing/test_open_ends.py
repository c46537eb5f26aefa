"""What a batch notes of logs that go on behind it is found by its own writers."""

from pathlib import Path

from mirrorlake.landing.open_ends import read_open_ends, write_open_ends


def test_a_note_is_that_of_its_batch(tmp_path: Path) -> None:
    ends = {"größe": {"0": 5}}
    assert read_open_ends(tmp_path, ends) is None
    write_open_ends(tmp_path, ends, "[]")
    assert (
        read_open_ends(tmp_path, ends) == "[]"
        and read_open_ends(tmp_path, {"größe": {"0": 6}}) is None
    )
    write_open_ends(tmp_path, {"größe": {"0": 6}}, None)
    assert (
        read_open_ends(tmp_path, ends) is None
        and read_open_ends(tmp_path, {"größe": {"0": 6}}) is None
    )
