"""What is noted of a resend is all that its next call needs."""

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.errors import LakeError
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.resend.note import (
    Resend,
    ResentTopic,
    first_of,
    is_resend,
    new_id,
    read_notes,
    with_began,
)

REQUEST = {"topic": "orders", "where": "key = 'ü'", "to": "orders.replay", "max_records": None}


def part(
    topic: str, target: str, *ranges: tuple[int, int, int, int, int], unproven: bool = False
) -> ResentTopic:
    staged = tuple(StagedRange("east", topic, *item) for item in ranges)
    return ResentTopic(topic, target, staged, (3, 0), unproven=unproven)


def resend(number: str = "20261124-1") -> Resend:
    parts = (
        part("orders", "orders.replay", (0, 0, 5, 90, 4), (0, 1, 0, 7, 8)),
        part("a.b", "a.b", (1, 0, 0, 0, 1), unproven=True),
    )
    return Resend(
        "replay",
        number,
        source="east",
        target="west",
        target_id="id-of-west",
        request=REQUEST,
        parts=parts,
        time_zone="Europe/Berlin",
    )


def rows_of(one: Resend) -> list[dict[str, object]]:
    return [
        {"flow": one.name, "resource": item.resource, "after": item.after} for item in one.began()
    ]


def test_a_resend_is_read_as_it_was_noted() -> None:
    one, other = resend(), resend("20261124-2")
    assert read_notes([*rows_of(one), *rows_of(other)]) == [one, other]
    assert [item.outcome for item in one.began()] == ["begun", "begun"]
    before = [
        {**row, "after": str(row["after"]).replace(', "unproven": true', "")}
        for row in rows_of(one)
    ]
    (read,) = read_notes(before)  # as earlier versions noted it
    assert [item.unproven for item in (*read.parts, *one.parts)] == [False, False, False, True]
    assert [item.after for item in one.ended({"a.b": 1})] == ["records=0", "records=1"]
    assert {item.outcome for item in one.ended({})} == {"done"} and {
        item.outcome for item in one.given_up()
    } == {"skipped"}


def test_its_name_is_that_of_no_flow_and_leads_to_its_target() -> None:
    one = resend()
    assert (
        one.name == "replay:20261124-1:east->west"
        and is_resend(one.name)
        and not is_resend("east->west")
    )
    assert one.name.split("->") == ["replay:20261124-1:east", "west"]
    now = datetime(2026, 11, 24, tzinfo=timezone.utc)
    assert new_id(now).startswith("20261124-") and new_id(now) != new_id(now)


def test_the_same_request_is_found() -> None:
    found = [resend("1"), resend("2")]
    assert found[0].answers("east", "west", REQUEST)
    assert not any(each.answers("west", "east", REQUEST) for each in found)
    assert not any(each.answers("east", "west", {**REQUEST, "max_records": 5}) for each in found)


def test_what_cannot_be_read_is_said() -> None:
    with pytest.raises(LakeError, match="replay:1:east->west cannot be read"):
        read_notes([{"flow": "replay:1:east->west", "resource": "a", "after": "{}"}])


def test_counts_ranges_and_ends() -> None:
    one = resend()
    assert (one.records, one.parts[0].records, len(one.ranges)) == (13, 12, 3)
    assert one.names == {"orders": "orders.replay", "a.b": "a.b"}
    began = with_began(one, {"orders.replay": (9,), "a.b": (1, 2)}, {"a.b": "its id"})
    assert [(item.began, item.topic_id) for item in began.parts] == [((9,), ""), ((1, 2), "its id")]
    assert read_notes(rows_of(began)) == [began]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 200))
def test_the_first_records_are_taken_in_order(counts: list[int], most: int) -> None:
    ranges = [
        StagedRange("east", "t", at // 2, at % 2, 0, 99, count) for at, count in enumerate(counts)
    ]
    kept, cut = first_of(reversed(ranges), most)
    taken = [*kept, *([] if cut is None else [cut])]
    assert sum(item.record_count for item in taken) == min(most, sum(counts))
    assert [item[:6] for item in taken] == [item[:6] for item in ranges[: len(taken)]]
    assert kept == ranges[: len(kept)] and (cut is None or 0 < cut.record_count < counts[len(kept)])
