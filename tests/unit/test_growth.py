"""The count of steps tells work that grows by more than what it is given from work that does
not."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.support.growth import LINEAR, SAME, Made, Name, growth


def names(size: int) -> list[str]:
    return [Name(f"t{number}") for number in range(size)]


def of_names(work: Callable[[list[str]], object]) -> Made:
    return lambda size: partial(work, names(size))


def in_a_loop(all_names: list[str]) -> None:
    for one in all_names:
        for other in all_names:
            if one is other:
                break


def in_a_comprehension(all_names: list[str]) -> list[str]:
    return [one for one in all_names for other in all_names if one is other]


def by_a_search_in_c(all_names: list[str]) -> int:
    return sum(all_names.index(name) for name in all_names)


def by_a_search_for_pairs(all_names: list[str]) -> bool:
    pairs = [(name, 0) for name in all_names]
    return all((str(name), 0) in pairs for name in all_names)


@pytest.mark.parametrize(
    "work", [in_a_loop, in_a_comprehension, by_a_search_in_c, by_a_search_for_pairs]
)
def test_pairs_of_all_are_seen(work: Callable[[list[str]], object]) -> None:
    assert growth(of_names(work)) > 2 * LINEAR


@pytest.mark.parametrize(
    "work",
    [
        lambda all_names: {name: name.upper() for name in all_names},
        lambda all_names: [name for name in all_names if name in set(all_names[:1])],
        sorted,
    ],
)
def test_what_looks_at_each_once_is_linear(work: Callable[[list[str]], object]) -> None:
    assert growth(of_names(work)) < LINEAR


def test_an_answer_by_a_key_takes_the_same_however_many_there_are() -> None:
    def made(size: int) -> Callable[[], object]:
        by_name = dict.fromkeys(names(size), 0)
        return lambda: by_name["t1"]

    assert growth(made) < SAME
