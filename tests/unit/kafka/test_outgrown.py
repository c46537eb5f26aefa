"""A client that knows many partitions of which its batches have few is replaced, and no other."""

from mirrorlake.kafka.client_pool import BATCHES, MANY, TIMES, Breadth


def answers(known: int, used: list[int]) -> list[bool]:
    breadth = Breadth()
    return [breadth.is_outgrown(known, partitions) for partitions in used]


def test_it_takes_many_partitions_and_few_in_each_of_some_batches() -> None:
    few = MANY // TIMES
    assert answers(MANY + 1, [few] * (BATCHES + 2)) == [False] * BATCHES + [True, True]
    assert not any(answers(MANY, [1] * 2 * BATCHES)), "few are known"
    assert not any(answers(TIMES * MANY, [MANY] * 2 * BATCHES)), "many are used"


def test_a_batch_of_many_partitions_begins_it_anew() -> None:
    used = [1] * BATCHES + [MANY] + [1] * BATCHES
    assert not any(answers(MANY + 1, used))
