"""Where the records of one log are in another: only where nothing else can be."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.produce.older_lake import places_in

LOG = st.lists(st.integers(0, 3), max_size=8)


def every_way(wanted: list[int], held: list[int]) -> list[list[int]]:
    """All rising places of those that are somewhere in the other log."""
    asked = [one for one in wanted if one in held]
    ways = combinations(range(len(held)), len(asked))
    return [list(way) for way in ways if [held[at] for at in way] == asked]


@given(LOG, LOG)
def test_places_are_known_where_there_is_one_way_alone(wanted: list[int], held: list[int]) -> None:
    ways = every_way(wanted, held)
    places = places_in(np.array(wanted, np.uint64), np.array(held, np.uint64))
    if len(ways) == 1:
        assert places is not None
        assert places[places >= 0].tolist() == ways[0]
        assert [at < 0 for at in places] == [one not in held for one in wanted]
    else:
        assert places is None
