"""Notebook 05 calls complete only what it knows of all sides."""

from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from mirrorlake.lake.lake import Lake
from mirrorlake.notebook.audit import verdict
from mirrorlake.notebook.host import Notebook
from mirrorlake.notebook.inline import plain_rows
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    run_row,
    sample,
    staged,
    write_file,
)

SQL = files("mirrorlake") / "sql"


def said(lake: Lake) -> str:
    def packaged(folder: str, name: str, **args: object) -> pa.Table:
        text = (SQL / folder / f"{name}.sql").read_text(encoding="utf-8")
        return lake.now.arrow(text, args).read_all()

    def rows(name: str, **args: object) -> Any:
        return plain_rows(packaged("notebooks", name, **args))

    return verdict(cast(Notebook, SimpleNamespace(flow=FLOW, rows=rows, packaged=packaged)))


def with_ten_records(directory: Path) -> Lake:
    lake = opened(no_session, write_file(directory))[0]
    append(lake, "records", staged(range(10)))
    append(lake, "offset_map", [run_row(0, 9)])
    return lake


def test_it_says_when_the_sides_were_looked_at(tmp_path: Path) -> None:
    lake = with_ten_records(tmp_path)
    append(lake, "positions", [sample(86_400, 10, 10)])
    at = f"{ago(86_400):%Y-%m-%d %H:%M}"[:-1]
    assert said(lake).startswith(f"flow {FLOW}: 1 partitions complete, and no other; as of {at}")


@pytest.mark.parametrize("age", [None, 40 * 86_400], ids=["never", "40 days ago"])
def test_what_no_sample_tells_of_is_not_complete(tmp_path: Path, age: float | None) -> None:
    lake = with_ten_records(tmp_path)
    append(lake, "positions", [] if age is None else [sample(age, 10, 10)])
    assert said(lake) == (
        f"flow {FLOW}: 0 partitions complete; 1 staged, but the source is not looked at any more"
    )


@pytest.mark.parametrize(
    ("sampled_ago", "said_of_it"), [(5, "0 partitions complete; 1 not on the target"), (600, "1 ")]
)
def test_what_left_the_stage_before_it_was_produced_is_not_complete(
    tmp_path: Path, sampled_ago: float, said_of_it: str
) -> None:
    """Fifteen records are in no count of staged ones; a sample that is older than the map says
    nothing of them."""
    lake = with_ten_records(tmp_path)
    append(lake, "positions", [sample(sampled_ago, 10, 25)])
    assert said(lake).startswith(f"flow {FLOW}: {said_of_it}")


def test_what_the_target_did_not_tell_of_is_not_complete(tmp_path: Path) -> None:
    """The leader of its partition did not answer: it may have lost what the map has."""
    lake = with_ten_records(tmp_path)
    append(lake, "positions", [sample(5, 10, 10, target_end=None)])
    assert said(lake).startswith(
        f"flow {FLOW}: 0 partitions complete; 1 the target did not say what it has"
    )


def test_what_an_earlier_target_topic_got_is_not_lost_by_the_one_of_now(tmp_path: Path) -> None:
    """Under another policy ten records went there; the topic of now has two."""
    lake = with_ten_records(tmp_path)
    append(lake, "records", staged([10, 11]))
    now = {"target_topic": "orders", "target_first": 0, "target_last": 1}
    segment = {"source_first": 10, "stride": 1, "target_first": 0, "record_count": 2}
    append(lake, "offset_map", [run_row(10, 11, segments=[segment], **now)])
    for end, said_of_it in ((2, "1 partitions complete"), (1, "0 partitions complete; 1 the t")):
        append(lake, "positions", [sample(5, 12, 12, target_topic="orders", target_end=end)])
        assert said(lake).startswith(f"flow {FLOW}: {said_of_it}")


def test_a_topic_that_was_staged_and_never_begun_is_not_complete(tmp_path: Path) -> None:
    """`divergence` lists its records: the host died between its landing and its first sample."""
    lake = with_ten_records(tmp_path)
    append(lake, "positions", [sample(5, 10, 10)])
    append(lake, "records", staged(range(3), topic="payments"))
    assert said(lake).startswith(f"flow {FLOW}: 1 partitions complete; 1 not on the target")


def test_what_an_open_transaction_holds_back_is_not_complete(tmp_path: Path) -> None:
    """`never_staged` lists it."""
    lake = with_ten_records(tmp_path)
    append(lake, "positions", [sample(5, 10, 10, source_high_watermark=14)])
    assert said(lake).startswith(f"flow {FLOW}: 0 partitions complete; 1 not staged")


def test_a_partition_that_cannot_be_read_is_not_complete(tmp_path: Path) -> None:
    """No sample tells of it any more, and nothing of it was ever staged."""
    lake = with_ten_records(tmp_path)
    dark = {"partition": 1, "staged_end": 0}
    gone = dict.fromkeys(("source_start", "source_end", "staged_end", "lag_records"))
    append(lake, "positions", [sample(5, 10, 10), sample(900, 0, 7, **dark)])
    append(lake, "positions", [{**sample(800, 0, 7, **dark), **gone}])
    refused = {"kind": "source_refused", "at": ago(800), "flow": FLOW, "topic": "orders"}
    append(lake, "incidents", [{**refused, "partition": 1}])
    assert said(lake).startswith(f"flow {FLOW}: 1 partitions complete; 1 not staged")
