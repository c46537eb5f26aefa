"""Notebook 03: translates offsets there and back."""

from collections.abc import Iterable

import altair as alt
import pyarrow as pa

import mirrorlake
from mirrorlake.errors import InputError
from mirrorlake.notebook import charts
from mirrorlake.notebook.host import Notebook
from mirrorlake.notebook.inline import plain_rows

#: (topic, partition, position), the topic named as on the side of the position.
TopicPartitionOffset = tuple[str, int, int]

_RESULT = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("position", pa.int64())]
    + [("other_topic", pa.string()), ("other_position", pa.int64())]
    + [("exact", pa.bool_()), ("back", pa.int64())]
)


def mapped(nb: Notebook) -> pa.Table:
    """The mapped offsets of the topic, per partition."""
    return nb.query("mapped_partitions", flow=nb.flow, topic=nb.topic)


def of_key(nb: Notebook) -> pa.Table:
    """The newest records with the widget's key, in the widget's partition if given."""
    partition = int(nb.number("partition", -1))
    return nb.query(
        "offsets_of_key", flow=nb.flow, topic=nb.topic, key=nb.widget("key"), partition=partition
    )


def asked_for(nb: Notebook) -> list[TopicPartitionOffset]:
    """The positions of the widget's key, else the widgets' position, else one in the middle of each
    mapped partition. Raises InputError if there is none."""
    if nb.widget("key"):
        positions = [
            (nb.topic, row["partition"], row["source_offset"]) for row in plain_rows(of_key(nb))
        ]
        if not positions:
            where = f"partition {nb.widget('partition')} of " if nb.widget("partition") else ""
            raise InputError(
                f"the stage has no record of key {nb.widget('key')} in {where}topic {nb.topic}; "
                "write the whole key"
            )
        return positions
    if nb.widget("offset"):
        return [(nb.topic, int(nb.number("partition", 0)), int(nb.number("offset", 0)))]
    rows = plain_rows(mapped(nb))
    if not rows:
        raise InputError(
            f"nothing of topic {nb.topic} is mapped by flow {nb.flow}; give another topic"
        )
    return [
        (nb.topic, row["partition"], (row["source_first"] + row["source_last"]) // 2)
        for row in rows
    ]


def there_and_back(nb: Notebook, asked: Iterable[TopicPartitionOffset]) -> pa.Table:
    """Source positions, translated to the target and back; `back` is the source position again."""
    return _both_ways(nb, list(asked), False)


def back_and_there(nb: Notebook, asked: Iterable[TopicPartitionOffset]) -> pa.Table:
    """Target positions, translated to the source and from there back."""
    there = nb.lake.translate_all(nb.flow, list(asked))
    return _both_ways(nb, [_place(position) for position in there.values()], True)


def at_time(nb: Notebook, at: str) -> pa.Table:
    """Where a consumer that goes back to a time begins on either side, per partition."""
    rows = nb.rows("offsets_at", flow=nb.flow, topic=nb.topic, at=at)
    return there_and_back(nb, [(nb.topic, row["partition"], row["source_offset"]) for row in rows])


def map_chart(nb: Notebook, partition: int) -> alt.Chart:
    """The newest ranges of the map of a partition."""
    table = nb.query("map_of_partition", flow=nb.flow, topic=nb.topic, partition=partition)
    return charts.offsets(table, f"{nb.flow}: {nb.topic}-{partition}")


def _both_ways(nb: Notebook, asked: list[TopicPartitionOffset], reverse: bool) -> pa.Table:
    there = nb.lake.translate_all(nb.flow, asked, reverse=reverse)
    back = nb.lake.translate_all(nb.flow, map(_place, there.values()), reverse=not reverse)
    rows = []
    for key, position in sorted(there.items()):
        again = back.get(_place(position))
        other = (position.topic, position.offset, position.exact)
        values = (*key, *other, None if again is None else again.offset)
        rows.append(dict(zip(_RESULT.names, values, strict=True)))
    return pa.Table.from_pylist(rows, schema=_RESULT)


def _place(position: mirrorlake.Position) -> TopicPartitionOffset:
    return position.topic, position.partition, position.offset
