"""What translates for a running flow, and remembers where the map ended."""

from pathlib import Path

from mirrorlake.lake.reader import Frame
from mirrorlake.lake.translate import Translator
from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, sample, write_file

_LOST = (
    "topic STRING, partition INT, target_topic STRING, target_generation INT, target_offset BIGINT"
)


def test_a_map_that_became_shorter_is_read_as_it_is(tmp_path: Path) -> None:
    """As where the target has lost records: a position behind the map's end leads behind its last
    record, and not to the start of the mirror, as if the partition had never been mirrored."""
    lake, _ = opened(no_session, write_file(tmp_path))
    append(lake, "offset_map", [run_row(0, 599), run_row(600, 999)])
    append(lake, "positions", [sample(60, 1000, 1000)])
    translator = Translator(lake, FLOW)

    def found(offset: int) -> tuple[int, bool]:
        key = ("orders", 0, offset)
        position = translator.translate([key], None)[key]
        return position.offset, position.exact

    assert found(1000) == (1000, True)
    lost = Frame(_LOST, [("orders", 0, "east.orders", 0, 600)])
    lake.change("cut_map", {"lost": lost}, flow=FLOW)
    assert found(700) == (600, False)
    assert found(300) == (300, True)
