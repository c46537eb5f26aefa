"""The index of the stage: however files come, go and are rewritten, it says which offsets lie
where."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex

PLACES = [("east", "orders", 0), ("east", "orders", 1), ("west", "orders", 0)]


@dataclass
class File:
    """Offsets by (place, generation)."""

    held: dict[tuple[tuple[str, str, int], int], set[int]] = field(default_factory=dict)

    def ranges(self) -> list[StagedRange]:
        return [
            StagedRange(*place, generation, min(offsets), max(offsets), len(offsets))
            for (place, generation), offsets in self.held.items()
        ]


class Table(RuleBasedStateMachine):
    """A table that lands, compacts and forgets; beside it an index that follows, and one that is
    built anew."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, File] = {}
        self.ends: dict[tuple[str, str, int], tuple[int, int]] = dict.fromkeys(PLACES, (0, 0))
        self.index = StageIndex()
        self.made = 0

    def _commit(self, added: list[File], removed: list[str]) -> None:
        named = {}
        for file in added:
            self.made += 1
            named[f"file-{self.made}"] = file
        for path in removed:
            del self.files[path]
        self.files.update(named)
        self.index.apply(
            [(path, file.ranges()) for path, file in named.items()], removed, self.index.version + 1
        )

    @rule(
        parts=st.lists(
            st.tuples(st.sampled_from(PLACES), st.integers(1, 9), st.integers(1, 3)),
            min_size=1,
            max_size=4,
        )
    )
    def land(self, parts: list[tuple[tuple[str, str, int], int, int]]) -> None:
        file = File()
        for place, count, step in parts:
            generation, end = self.ends[place]
            offsets = set(range(end, end + count * step, step))
            file.held.setdefault((place, generation), set()).update(offsets)
            self.ends[place] = (generation, max(offsets) + 1)
        self._commit([file], [])

    @rule(place=st.sampled_from(PLACES))
    def begin_generation(self, place: tuple[str, str, int]) -> None:
        self.ends[place] = (self.ends[place][0] + 1, 0)

    @precondition(lambda self: len(self.files) > 1)
    @rule(data=st.data())
    def optimize(self, data: st.DataObject) -> None:
        """Files become one, or rows are dealt over two by chance, as OPTIMIZE ZORDER does."""
        taken = data.draw(st.lists(st.sampled_from(sorted(self.files)), min_size=2, unique=True))
        apart = data.draw(st.booleans())
        into = [File(), File()]
        for path in taken:
            for key, offsets in self.files[path].held.items():
                for offset in offsets:
                    into[offset % 2 if apart else 0].held.setdefault(key, set()).add(offset)
        self._commit([file for file in into if file.held], taken)

    @precondition(lambda self: self.files)
    @rule(data=st.data())
    def retain(self, data: st.DataObject) -> None:
        self._commit([], [data.draw(st.sampled_from(sorted(self.files)))])

    @invariant()
    def it_is_the_one_that_is_built_anew(self) -> None:
        anew = StageIndex()
        anew.apply(
            [(path, file.ranges()) for path, file in self.files.items()], (), self.index.version
        )
        assert sorted(map(str, anew.rows())) == sorted(map(str, self.index.rows()))
        assert anew.ends("east") == self.index.ends("east")

    @invariant()
    def it_names_every_file_with_something_above(self) -> None:
        for cluster, topic, partition in PLACES:
            ranges = self.index.topics(cluster).get(topic, {}).get(partition)
            for generation in range(3):
                for offset in (0, 3, 10):
                    wanted = sorted(
                        path
                        for path, file in self.files.items()
                        for (place, found), offsets in file.held.items()
                        if place == (cluster, topic, partition)
                        and found == generation
                        and max(offsets) >= offset
                    )
                    items = [] if ranges is None else list(ranges.above(generation, offset))
                    if wanted:
                        assert sorted(self.index.path(item.file) for item in items) == wanted
                        assert [item.first for item in items] == sorted(
                            item.first for item in items
                        )
                    assert all(item.generation > generation for item in items) or wanted


TestTable = Table.TestCase


@given(st.integers(0, 5), st.integers(0, 30))
def test_behind_a_generation_comes_the_next_that_there_is(generation: int, offset: int) -> None:
    index = StageIndex()
    index.apply(
        [(f"f{number}", [StagedRange("east", "orders", 0, number, 0, 9, 10)]) for number in (1, 3)],
        (),
        0,
    )
    found = [
        item.generation for item in index.topics("east")["orders"][0].above(generation, offset)
    ]
    here = [generation] if generation in (1, 3) and offset <= 9 else []
    assert found == (here or [number for number in (1, 3) if number > generation][:1])
