"""Writing to a target that is slow: librdkafka's own mock broker, which answers each request after
a while."""

import os

import pytest

from mirrorlake.produce import pace, patience, shard_writing, task, writer
from mirrorlake.produce.batch import NOTHING_MAPPED, PartitionPlan, ShardPlan
from mirrorlake.produce.spec import Target
from mirrorlake.produce.task import ShardJob, produce_shard
from tests.support.shards import chunks

ROWS, SIZE, AT_A_TIME = 450, 1_000, 50
PLAN = PartitionPlan("t", 0, "t", floor=NOTHING_MAPPED, first=0, last=ROWS - 1)
#: One request of 15 kB at a time, each answered after a tenth of a second: 150 kB/s.
SLOW = {
    "test.mock.num.brokers": 1,
    "test.mock.broker.rtt": 100,
    "max.in.flight": 1,
    "batch.size": 15_000,
    "compression.type": "none",
    "transaction.timeout.ms": 4_000,
}
pytestmark = pytest.mark.parametrize(
    "lane",
    [
        "native",
        pytest.param(
            "python",
            marks=pytest.mark.wide("test_all_is_written_at_the_rate_that_the_target_takes"),
        ),
    ],
    indirect=True,
)


@pytest.fixture
def job(lane: str, monkeypatch: pytest.MonkeyPatch) -> ShardJob:
    """450 kB for a target that takes a third of it in a second, the time that one call may take."""
    monkeypatch.setattr(patience, "CALL_SECONDS", 1.0)
    monkeypatch.setattr(writer, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(pace, "AIM_SECONDS", 1.0)
    monkeypatch.setattr(pace, "SMALLEST", 20_000)
    # its client has no mock
    monkeypatch.setattr(writer.ShardWriter, "positions", lambda _self, _keys: {})
    # neither has this one's
    monkeypatch.setattr(task, "check_token", lambda _target, _topics: None)
    target = Target(
        {"bootstrap.servers": "127.0.0.1:1"}, SLOW, "group", os.urandom(8).hex(), transactional=True
    )
    return ShardJob(ShardPlan(0, (PLAN,), (), ROWS), target, None)


def test_all_is_written_at_the_rate_that_the_target_takes(job: ShardJob) -> None:
    result = produce_shard(job, chunks(PLAN, ROWS, SIZE, AT_A_TIME))
    assert result.column("record_count").to_pylist() == [ROWS] and result.column(
        "complete"
    ).to_pylist() == [True]
    runs = result.column("runs")[0].as_py()
    assert runs[0]["source_first"] == 0 and runs[-1]["source_last"] == ROWS - 1
    found = task._paces.get(job.target.transactional_id)
    assert found is not None and found.limit < 200_000, "the transactions became no smaller"


def test_what_takes_too_long_is_left_to_the_next_batch(
    job: ShardJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "FIRST", 100_000)
    monkeypatch.setattr(shard_writing, "TASK_SECONDS", 1.0)
    result = produce_shard(job, chunks(PLAN, ROWS, SIZE, AT_A_TIME))
    count = result.column("record_count")[0].as_py()
    assert 0 < count < ROWS and result.column("complete").to_pylist() == [False]
    runs = result.column("runs")[0].as_py()
    assert runs[-1]["source_last"] == count - 1
    assert result.column("reached").to_pylist() == [count]
