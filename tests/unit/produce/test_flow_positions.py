"""What a transaction commits of positions."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.progress import Floor
from mirrorlake.offsets.runs import Segment, Written, decode_metadata
from mirrorlake.produce import flow_positions
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.delivery import Chunk
from mirrorlake.produce.flow_positions import MetadataFull, metadata_of, positions_behind


def plan(partition: int) -> PartitionPlan:
    ids = ((0, "old"), (3, "source"))
    return PartitionPlan(
        *("t", partition, "east.t"), Floor(0, None, 3, 2), 0, 9, source_ids=ids, target_id="target"
    )


def chunk(partition: int, first: int, count: int) -> tuple[Chunk, list[Segment]]:
    """Records at every second source offset that got target offsets one behind the other."""
    offsets = np.arange(first, first + 2 * count, 2)
    rows = pa.record_batch({"offset": pa.array(offsets)})
    return Chunk(plan(partition), rows, offsets), [Segment(first, 2, 1000 + first // 2, count)]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_a_position_lies_behind_the_last_chunk_and_names_what_all_of_them_wrote(
    counts: list[int],
) -> None:
    before = {("t", 0): [Written(10, 900, 5)]}
    first, done = 40, list[tuple[Chunk, list[Segment]]]()
    for count in counts:
        done.append(chunk(0, first, count))
        first += 2 * count
    positions = positions_behind([*done, chunk(1, 6, 2)], before)
    assert {key: offset for key, (offset, _) in positions.items()} == {
        ("east.t", 0): first - 1,
        ("east.t", 1): 9,
    }
    metadata = {key: decode_metadata(text) for key, (_, text) in positions.items()}
    assert metadata["east.t", 0].written == (Written(10, 900, 5), Written(40, 1020, sum(counts)))
    assert metadata["east.t", 1].written == (Written(6, 1003, 2),)
    for named in metadata.values():
        assert (named.generation, named.target_generation) == (3, 2)
        assert (named.source_id, named.target_id) == ("source", "target")
    assert before == {("t", 0): [Written(10, 900, 5)]}, "nothing is committed yet"


def test_metadata_is_never_longer_than_a_broker_takes() -> None:
    """One record more is refused, before anything of it is sent to the group."""
    written = list[Written]()
    with pytest.raises(MetadataFull):
        while True:
            written.append(Written(10 * len(written), 20 * len(written), 1))
            assert len(metadata_of(plan(0), written)) <= flow_positions.METADATA_BYTES < 4_096
    assert len(written) > 300
    apart = chunk(0, 10 * len(written), 1)
    with pytest.raises(MetadataFull):
        positions_behind([apart], {("t", 0): written[:-1]})
