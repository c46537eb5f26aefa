"""Which parked records are sent, and which of them were."""

from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.resend.note import Resend, ResentTopic, read_notes
from mirrorlake.resend.parked import parts_of, sent_of


def row(topic: str, partition: int, generation: int, offset: int) -> dict[str, object]:
    place = {"topic": topic, "partition": partition, "generation": generation, "offset": offset}
    return {**place, "target_topic": f"east.{topic}"}


ROWS = [
    row("a", 0, 0, 3),
    row("a", 0, 0, 9),
    row("a", 0, 1, 2),
    row("a", 1, 0, 5),
    row("b", 0, 0, 7),
]
PARTS = (
    ResentTopic(
        "a",
        "east.a",
        (
            StagedRange("east", "a", 0, 0, 3, 9, 2),
            StagedRange("east", "a", 0, 1, 2, 2, 1),
            StagedRange("east", "a", 1, 0, 5, 5, 1),
        ),
        picked=((0, 0, 3), (0, 0, 9), (0, 1, 2), (1, 0, 5)),
    ),
    ResentTopic("b", "east.b", (StagedRange("east", "b", 0, 0, 7, 7, 1),), picked=((0, 0, 7),)),
)
RESEND = Resend(
    "replay",
    "1",
    source="east",
    target="west",
    target_id="id",
    request={"parked": "east->west"},
    parts=PARTS,
)


def test_rows_become_parts() -> None:
    assert parts_of("east", ROWS) == PARTS and RESEND.records == len(ROWS)


def test_each_record_is_noted() -> None:
    noted = [
        {"flow": RESEND.name, "resource": one.resource, "after": one.after}
        for one in RESEND.began()
    ]
    assert read_notes(noted) == [RESEND]


def segment(
    topic: str, partition: int, generation: int, first: int, stride: int, count: int
) -> dict[str, object]:
    place = {"topic": topic, "partition": partition, "generation": generation}
    return {**place, "source_first": first, "stride": stride, "record_count": count}


def test_what_the_map_has_was_sent() -> None:
    segments = [
        segment("a", 0, 0, 3, 6, 2),
        segment("a", 0, 1, 0, 2, 1),
        segment("b", 0, 0, 0, 1, 7),
    ]
    assert sent_of(RESEND, segments) == [("a", 0, 0, 3, "east.a"), ("a", 0, 0, 9, "east.a")]
