"""When a query that could not go on is followed by another one, and what that one leaves out."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import ReplicationError
from mirrorlake.landing.broken_queries import BEGUN_ANEW, BrokenQueries
from mirrorlake.landing.source_comparison import NO_GENERATIONS
from mirrorlake.offsets.positions import TopicAndPartition

A, B = ("a", 0), ("b", 1)


class Planner:
    """Plans that explain nothing, and keeps what is refused."""

    def __init__(self) -> None:
        self.refused: set[TopicAndPartition] = set()

    def plan(self, _covered: object, _covered_in: object) -> Any:
        return SimpleNamespace(explains=lambda *_: False, losses=())

    def refuse(self, refused: dict[TopicAndPartition, str]) -> None:
        self.refused |= refused.keys()


def unreadable(*names: str) -> KafkaException:
    texts = [f"{name} cannot be read from offset 5: Broker: Unknown" for name in names]
    return KafkaException(KafkaError(KafkaError.UNKNOWN, "\n".join(texts)))


@pytest.mark.parametrize("came_through", [False, True])
def test_a_partition_is_left_out_that_errors_name_twice_in_a_row(came_through: bool) -> None:
    planner, broken = Planner(), BrokenQueries("landing from cluster east")
    planned: Any = SimpleNamespace(
        plan=SimpleNamespace(starts={A: 0, B: 0}), current_generations=NO_GENERATIONS
    )

    def fails(*names: str) -> None:
        broken.failed(unreadable(*names), planned, planner, {})  # type: ignore[arg-type]

    with pytest.raises(KafkaException):
        fails("a-0")
    if came_through:
        broken.came_through(once=True)
        with pytest.raises(KafkaException):
            fails("a-0")
    with pytest.raises(KafkaException):
        fails("b-1")
    assert planner.refused == set()
    fails("b-1")
    assert planner.refused == {B}


@pytest.mark.parametrize("once", [False, True])
def test_a_run_with_an_end_counts_all_its_queries(once: bool) -> None:
    broken = BrokenQueries("landing from cluster east")
    for _ in range(BEGUN_ANEW):
        broken.begin_anew("stopped")
    broken.came_through(once)
    if once:
        with pytest.raises(ReplicationError, match="landing from cluster east was begun anew 10"):
            broken.begin_anew("stopped")
    else:
        broken.begin_anew("stopped")
