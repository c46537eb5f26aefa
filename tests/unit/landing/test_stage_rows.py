"""Rows that a task hands to Spark."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import StagingError
from mirrorlake.lake.definitions import definition
from mirrorlake.landing import stage_rows
from mirrorlake.landing.job import LandJob, Part
from mirrorlake.landing.pace import NOTHING_KNOWN
from mirrorlake.landing.receipts import receipt
from mirrorlake.landing.stage_rows import (
    ADDED_BY_SPARK,
    NEVER_NULL,
    PART_DONE,
    Read,
    row_batches,
    rows_of_parts,
    schema_for_spark,
)
from mirrorlake.native.columns import HEADERS
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.spark.tasks import NUMBER
from tests.support.landing import job_in, rows

SCHEMA = schema_for_spark(definition("records").rows)
ENDS = {("a", 0): 9, ("b", 1): 30, ("odd", 1): 5}
PART = Part("east", 1_700_000_000_123, 1_700_000_000_999, {("b", 1): 2}, ENDS)


def test_rows_have_the_columns_of_the_table_but_those_that_spark_adds(tmp_path: Path) -> None:
    job = job_in(tmp_path, schema=SCHEMA)
    read = [(("b", 1), rows(1, [7, 9])), (("a", 0), rows(0, [1, 2])), (("b", 1), rows(1, [10]))]
    *batches, done = row_batches(job, PART, read)
    assert len(batches) == 1, "small parts go together"
    (batch,) = batches
    table = definition("records").rows
    assert set(table.names) - set(SCHEMA.names) == {ADDED_BY_SPARK}
    assert batch.schema.equals(done.schema)
    assert batch.schema.equals(SCHEMA), "Spark 4.2 compares them, nullability included"
    assert {field.name for field in SCHEMA if not field.nullable} == NEVER_NULL
    assert not any(batch.column(name).null_count for name in NEVER_NULL)
    columns = ("topic", "partition", "offset", "generation", "batch_id", "batch_end")
    assert [tuple(row[name] for name in columns) for row in batch.to_pylist()] == [
        *(("a", 0, offset, 0, 1_700_000_000_999, 9) for offset in (1, 2)),
        *(("b", 1, offset, 2, 1_700_000_000_999, 30) for offset in (7, 9, 10)),
    ]


@pytest.mark.parametrize("column", ["topic", "generation"])
def test_a_null_where_there_is_none_is_refused(tmp_path: Path, column: str) -> None:
    """Spark takes 0 for it, or what lay there before, and delta-rs writes it."""

    class Odd(Part):
        def columns(self, key: TopicAndPartition) -> dict[str, object]:
            return {**super().columns(key), column: None}

    part = Odd("east", 1, 1, {}, {("a", 0): 9})
    with pytest.raises(StagingError, match=f"a-0 cannot be .* offset 1, .*: its {column} is null"):
        list(row_batches(job_in(tmp_path, schema=SCHEMA), part, [(("a", 0), rows(0, [1, 2]))]))


def test_a_task_reads_the_parts_whose_numbers_it_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_job: LandJob, part: Part) -> Read:
        return [(key, rows(key[1], [*range(*bounds)])) for key, bounds in part.ranges.items()]

    monkeypatch.setattr(stage_rows, "read_part", read)
    job = job_in(tmp_path, schema=SCHEMA, starts={("a", 0): 5, ("a", 1): 0})
    parts = job.parts({("a", 0): (5, 9), ("a", 1): (0, 4)}, "[]", 2, NOTHING_KNOWN)
    assert len(parts) == 2
    found = [
        [
            (row["partition"], row["offset"], row["open_ends"])
            for batch in rows_of_parts(job, parts, [pa.record_batch({NUMBER: [number]})])
            for row in batch.to_pylist()
            if row["partition"] != PART_DONE
        ]
        for number in (0, 1)
    ]
    assert found == [
        [(0, offset, "[]") for offset in range(5, 9)],
        [(1, offset, "[]") for offset in range(4)],
    ]


def test_what_is_handed_over_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_rows, "HANDED_BYTES", 50_000)
    read = [(("a", 0), rows(0, [offset], 20_000)) for offset in range(10)]
    *batches, _ = row_batches(job_in(tmp_path, schema=SCHEMA), PART, read)
    assert max(batch.num_rows for batch in batches) <= 3
    assert [row for batch in batches for row in batch.column("offset").to_pylist()] == [*range(10)]


def test_the_last_row_says_what_was_read_and_comes_behind_all(tmp_path: Path) -> None:
    """Markers too, and what is left out: it is compared with what Spark's batch has."""
    part = replace(PART, ranges={("a", 0): (1, 9), ("b", 1): (7, 30)})
    read = [(("a", 0), rows(0, [1, 2]))]
    (*_, done), columns = (
        row_batches(job_in(tmp_path, schema=SCHEMA), part, read),
        sorted(NEVER_NULL),
    )
    (row,) = done.to_pylist()
    assert (row["partition"], row["topic"]) == (PART_DONE, receipt(part.ranges))
    assert all(row[name] is not None for name in columns)
    *_, done = row_batches(job_in(tmp_path, schema=SCHEMA), part, [])
    assert done.to_pylist() == [row]

    def broken() -> Read:
        yield from read
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    given = list[pa.RecordBatch]()
    with pytest.raises(KafkaException):
        given.extend(row_batches(job_in(tmp_path, schema=SCHEMA), part, broken()))
    assert PART_DONE not in [row["partition"] for batch in given for row in batch.to_pylist()]


def test_what_was_forgotten_is_left_out(tmp_path: Path) -> None:
    forgotten = {("a", 0): OffsetRanges([(2, 3), (8, 8)])}
    job = job_in(tmp_path, schema=SCHEMA, forgotten=forgotten)
    read = [(("a", 0), rows(0, [1, 2, 3, 4])), (("a", 0), rows(0, [8])), (("b", 1), rows(1, [2]))]
    *batches, _ = row_batches(job, PART, read)
    found = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["topic"], row["offset"]) for row in found] == [("a", 1), ("a", 4), ("b", 2)]


def test_a_record_that_cannot_be_staged_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_rows, "split_times", lambda times: (times, None))
    odd = rows(1, [3, 4])
    times = pa.array([5, 2**62], pa.int64()).cast(odd.schema.field("timestamp").type)
    at = odd.schema.get_field_index("timestamp")
    read = [(("odd", 1), odd.set_column(at, odd.schema.field(at), times))]
    with pytest.raises(StagingError, match="odd-1 cannot be staged from offset 4"):
        list(row_batches(job_in(tmp_path, schema=SCHEMA), PART, read))


def test_a_record_whose_headers_could_not_be_read_is_not_staged_without_them(
    tmp_path: Path,
) -> None:
    odd = rows(1, [3, 4])
    at = odd.schema.get_field_index("headers")
    headers = pa.array([[{"key": "h", "value": b"1"}], [{"key": None, "value": None}]], HEADERS)
    read = [(("odd", 1), odd.set_column(at, odd.schema.field(at), headers))]
    with pytest.raises(StagingError, match="odd-1 cannot be staged from offset 4.*no UTF-8"):
        list(row_batches(job_in(tmp_path, schema=SCHEMA), PART, read))
