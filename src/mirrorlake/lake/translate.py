"""Translation of positions between source and target: the library's door to the one law, which is SQL.

`sql/queries/translate_forward.sql` and `translate_reverse.sql` hold the law over the view `offset_translation`.
"""

from dataclasses import dataclass

from mirrorlake.errors import UnknownOffset
from mirrorlake.lake.lake import Lake


@dataclass(frozen=True)
class Translation:
    """A position on the other cluster. Not `exact` means: not replicated yet, and this is the highest safe position."""

    topic: str
    partition: int
    offset: int
    exact: bool


def translate(lake: Lake, flow: str, topic: str, partition: int, offset: int, reverse: bool = False) -> Translation:
    """Translate a position: from the source to the target of a flow, or back with `reverse`.

    `topic` is named as on the side that the position is from. A position inside a gap goes to the next record; reading
    from the translated position never skips a record, and repeats none. Raises UnknownOffset for what was never seen.
    """
    query = "translate_reverse" if reverse else "translate_forward"
    row = lake.query(query, flow=flow, topic=topic, partition=partition, offset=offset).collect()[0]
    if not row["known"]:
        side = "target" if reverse else "source"
        raise UnknownOffset(
            f"flow {flow} has never seen partition {partition} of {side} topic {topic}; "
            "look at `mirrorlake status` for what it mirrors",
            flow=flow,
            topic=topic,
            partition=partition,
        )
    return Translation(row["topic"], int(row["partition"]), int(row["offset"]), bool(row["exact"]))
