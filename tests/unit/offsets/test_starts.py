"""Where a flow begins that was told not to begin at the start: in what was there, and nowhere
else."""

from mirrorlake.offsets.generations import TargetGeneration
from mirrorlake.offsets.positions import PartitionGeneration as At
from mirrorlake.offsets.progress import Floor
from mirrorlake.offsets.starts import floors_from, landing_begins


def test_a_start_is_where_nothing_was_mapped_below_it() -> None:
    starts = {
        At("t", 0, 0): 100,
        At("t", 1, 0): 50,
        At("t", 2, 1): 7,
        At("t", 3, 0): 9,
        At("gone", 0, 0): 3,
    }
    floors = {("t", 1): Floor(60, 12), ("t", 2): Floor(4, 4, 2), ("t", 3): Floor(2, 2)}
    names = {"t": "east.t"}
    found = floors_from(floors, starts, names.get, {"east.t": TargetGeneration(2)})
    assert {key: (floor.generation, floor.next) for key, floor in found.items()} == {
        ("t", 0): (0, 100),
        ("t", 1): (0, 60),  # it has come further
        ("t", 2): (2, 4),  # another generation, which has its own beginning
        ("t", 3): (0, 9),
    }
    assert (found["t", 0].target, found["t", 0].target_generation) == (None, 2)


def test_landing_begins_where_the_first_flow_does() -> None:
    noted = {
        "a->b": {At("t", 0, 0): 100, At("u", 0, 0): 5, At("v", 0, 0): 8},
        "a->c": {At("t", 0, 0): 70, At("w", 0, 3): 4},
    }
    selects = {
        "a->b": lambda topic: topic in "tuv",
        "a->c": lambda topic: topic in "tw",
        "a->d": lambda topic: topic == "u",
    }
    begins = landing_begins(
        noted, selects, lambda key: 3 if key[0] == "w" else 1 if key[0] == "v" else 0
    )
    assert begins == {("t", 0): 70, ("w", 0): 4}, "u is wanted as a whole, v was made again"
    assert landing_begins(noted, {}, lambda key: 0) == {}
