"""A watch tells of records behind the ends of logs: against librdkafka's own stand-in for a broker,
which knows no transactions (`tests/integration/test_log_watch.py` has these)."""

import time
from collections.abc import Collection, Iterator
from contextlib import closing

import pytest

from mirrorlake.native import watch as watch_module
from mirrorlake.native.watch import LogWatch
from tests.support.mock_kafka import mock_kafka, write_to_mock
from tests.support.waiting import until

TOPIC, PARTITIONS = "quiet", 40
#: How long a fetch waits here, and nothing is told where nothing is to be, seconds.
WAIT_SECONDS = 0.2


@pytest.fixture
def address() -> Iterator[str]:
    with mock_kafka({TOPIC: PARTITIONS, "other": 1}) as address:
        yield address


@pytest.fixture
def watch(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LogWatch]:
    short = {**watch_module._SETTINGS, "fetch.wait.max.ms": int(WAIT_SECONDS * 1_000)}
    monkeypatch.setattr(watch_module, "_SETTINGS", short)
    with closing(LogWatch({"bootstrap.servers": address, "log_level": 0})) as watch:
        yield watch


def told(watch: LogWatch, wanted: Collection[int]) -> set[int]:
    """What is told until all of these were."""
    found: set[int] = set()

    def all_of_them() -> bool:
        found.update(partition for _, partition in watch.moved())
        return found >= set(wanted)

    until(all_of_them, "the watch tells of all", 20)
    return found


def tells_nothing(watch: LogWatch) -> bool:
    """Whether it tells of none within some fetches."""
    end, found = time.monotonic() + 5 * WAIT_SECONDS, set[tuple[str, int]]()

    def over() -> bool:
        found.update(watch.moved())
        return bool(found) or time.monotonic() > end

    until(over, "time is over")
    return not found


def test_each_partition_with_a_record_is_told_once(address: str, watch: LogWatch) -> None:
    watch.watch({(TOPIC, number): 0 for number in range(PARTITIONS)} | {("other", 0): 0})
    assert tells_nothing(watch)
    moving = [*range(0, PARTITIONS, 2)]
    write_to_mock(address, TOPIC, moving)
    assert told(watch, moving) == set(moving)
    write_to_mock(address, TOPIC, moving)
    assert tells_nothing(watch), "they are watched no more"


def test_one_that_is_watched_again_is_told_from_there_on(address: str, watch: LogWatch) -> None:
    write_to_mock(address, TOPIC, [3])
    watch.watch({(TOPIC, 3): 1})
    assert tells_nothing(watch)
    watch.watch({(TOPIC, 3): 0})
    assert told(watch, [3]) == {3}
    watch.watch({(TOPIC, 3): 1, (TOPIC, 4): 0})
    watch._consumer.stop([(TOPIC, 4)])
    write_to_mock(address, TOPIC, [4])
    assert tells_nothing(watch)


def test_a_log_that_ends_in_front_of_where_it_is_watched_is_told(watch: LogWatch) -> None:
    watch.watch({(TOPIC, 5): 7})
    assert told(watch, [5]) == {5}


def test_it_can_be_closed_while_it_has_something_to_tell(address: str, watch: LogWatch) -> None:
    watch.watch({(TOPIC, number): 0 for number in range(PARTITIONS)})
    write_to_mock(address, TOPIC, [*range(PARTITIONS)])
    watch.close()
    watch.close()
