"""What translates for a running flow, and remembers where the map ended."""

from pathlib import Path

import pytest

from mirrorlake.lake.reader import Frame
from mirrorlake.lake.translate import Translator, translate, translate_all
from mirrorlake.offsets.positions import Reached
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    run_row,
    sample,
    write_file,
)

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


@pytest.mark.parametrize("sampled", [60, -3600], ids=["right", "ahead"])
@pytest.mark.parametrize("is_decided", [False, True])
@pytest.mark.parametrize("name", [None, "east.orders"])
def test_what_a_sample_says_of_a_target_that_lost_records_since_is_not_exact(
    tmp_path: Path, name: str | None, is_decided: bool, sampled: float
) -> None:
    """Behind 1,000 records were markers, all of which went; then 600 to 999 came once more, and
    1,000 in the place of a marker, which the map has not got yet: a reader behind it has it. The
    clock of the sample may have been an hour ahead."""
    lake, _ = opened(no_session, write_file(tmp_path))
    append(lake, "offset_map", [run_row(0, 999)])
    ends = {"mapped_end": 1000, "target_passed_end": 1005}
    append(lake, "positions", [sample(sampled, 1000, 1000, **ends)])
    there = [translate(lake.now, FLOW, "east.orders", 0, at, reverse=True) for at in (1000, 1001)]
    assert [(one.offset, one.exact) for one in there] == [(1000, True), (1000, True)]
    lost = {"flow": FLOW, "at": ago(30), "kind": "target_lost", "topic": "orders", "partition": 0}
    lost |= {"target_generation": 0, "first_offset": 600}
    if is_decided:
        lost |= {"resolved_at": ago(20), "resolution": "produce-again"}
    append(lake, "incidents", [{**lost, "target_topic": "copy.orders"}])
    assert translate(lake.now, FLOW, "east.orders", 0, 1001, reverse=True).exact, "of another one"
    append(lake, "incidents", [{**lost, "target_topic": name}])
    there = [translate(lake.now, FLOW, "east.orders", 0, at, reverse=True) for at in (1000, 1001)]
    assert [(one.offset, one.exact) for one in there] == [(1000, True), (1000, False)]
    if is_decided:
        append(lake, "positions", [sample(5, 1000, 1000, mapped_end=1000, target_passed_end=1001)])
        assert translate(lake.now, FLOW, "east.orders", 0, 1001, reverse=True).exact


@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("brought", [0, 50])
def test_a_position_behind_all_leads_into_the_topic_that_the_flow_goes_on_with(
    tmp_path: Path, brought: int, is_running: bool
) -> None:
    """The policy was changed behind 1,000 records: who has read these, or all, reads on in the new
    topic, and finds nothing more in the one of before."""
    lake, _ = opened(no_session, write_file(tmp_path))
    append(lake, "offset_map", [run_row(0, 999)])
    append(lake, "positions", [sample(90, 1000, 1000)])
    now, end = {"target_topic": "orders", "target_generation": 0}, 1000 + brought
    if brought:
        segment = {"source_first": 1000, "stride": 1, "target_first": 0, "record_count": brought}
        ends = {"target_first": 0, "target_last": brought - 1, "segments": [segment]}
        append(lake, "offset_map", [run_row(1000, end - 1, **now, **ends)])
    sampled = sample(5, end, end, mapped_end=end if brought else 0, target_end=brought, **now)
    append(lake, "positions", [sampled])
    asked = [("orders", 0, at) for at in (500, 1000, end)]
    reached = {("orders", 0): Reached(end, sampled["mapped_end"], "orders")}
    found = (
        Translator(lake, FLOW).translate(asked, reached)
        if is_running
        else translate_all(lake.now, FLOW, asked)
    )
    there = [(found[key].topic, found[key].offset, found[key].exact) for key in asked]
    assert there == [("east.orders", 500, True), ("orders", 0, True), ("orders", brought, True)]


def test_a_sample_of_before_does_not_lead_into_the_topic_of_before(tmp_path: Path) -> None:
    """The flow went on into another topic since it was sampled last, which holds fewer records."""
    lake, _ = opened(no_session, write_file(tmp_path))
    append(lake, "offset_map", [run_row(0, 999)])
    append(lake, "positions", [sample(90, 1000, 1000)])
    segment = {"source_first": 1000, "stride": 1, "target_first": 7, "record_count": 3}
    ends = {"target_first": 7, "target_last": 9, "segments": [segment]}
    append(lake, "offset_map", [run_row(1000, 1002, target_topic="orders", **ends)])
    found = translate(lake.now, FLOW, "orders", 0, 1003)
    assert (found.topic, found.offset, found.exact) == ("orders", 10, True)
