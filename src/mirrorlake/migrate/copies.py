"""The groups that one call of migrate moves, and how; and the topics of which the target has both
MirrorMaker 2's copy and ours."""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from mirrorlake.errors import InputError
from mirrorlake.groups.shared_topics import Route
from mirrorlake.lake.targets import living_targets
from mirrorlake.migrate.locating import Pair
from mirrorlake.offsets.positions import TopicAndPartition

#: The names under MirrorMaker 2's default policy; under its identity policy it is `{topic}`.
DEFAULT_COPIES = "{source}.{topic}"
EVERY_NAME = ".*"


@dataclass(frozen=True)
class Wave:
    """What to move, and how.

    Attributes:
        topics: regex that source topics match as a whole.
        groups: regex that groups match as a whole.
        copies: how MirrorMaker 2 names its copies: a template with `{topic}`, and `{source}` for
            the alias.
        rollback: from our copies to those of MirrorMaker 2.
        dry_run: change nothing.
        inexact: also move positions from which some records are read a second time.
    """

    topics: str = EVERY_NAME
    groups: str = EVERY_NAME
    copies: str = DEFAULT_COPIES
    rollback: bool = False
    dry_run: bool = False
    inexact: bool = False

    def check(self) -> None:
        """Raise InputError for an invalid pattern or template."""
        for option, pattern in (("--topics", self.topics), ("--groups", self.groups)):
            try:
                re.compile(pattern)
            except re.error as error:
                raise InputError(f"{option} {pattern} is no regular expression: {error}") from None
        rest = self.copies.replace("{topic}", "", 1).replace("{source}", "", 1)
        if "{topic}" not in self.copies or "{" in rest or "}" in rest:
            raise InputError(
                f"--copies {self.copies}: write it as {DEFAULT_COPIES}, or {{topic}} for the same "
                "names"
            )

    def names_group(self, group: str) -> bool:
        """Whether `groups` matches a group."""
        return re.fullmatch(self.groups, group) is not None

    def copy_of(self, source: str, topic: str) -> str:
        """The name of MirrorMaker 2's copy of a topic."""
        return self.copies.replace("{source}", source).replace("{topic}", topic)

    def topic_of(self, source: str, copy: str) -> str:
        """The topic whose copy by MirrorMaker 2 would have this name; empty if there is none."""
        first, _, last = self.copies.replace("{source}", source).partition("{topic}")
        named = copy.startswith(first) and copy.endswith(last)
        return copy[len(first) : len(copy) - len(last)] if named else ""


class Copies(NamedTuple):
    """`pairs` are the partitions of a wave of which the target has both copies, `lacking` says why
    others have not. `beyond` maps the copy that groups leave to partitions with records that only
    the other copy has. `unshown` are, judging by names, MirrorMaker 2's copies of topics that the
    source does not show, or no longer has, and that the flow never mirrored."""

    pairs: list[Pair]
    lacking: list[str]
    beyond: Mapping[str, Sequence[TopicAndPartition]]
    unshown: Set[str]


def copies_of(route: Route, wave: Wave) -> Copies:
    """Find the copies of a wave's topics at the target. A topic that the source no longer has, or
    does not show, counts as long as groups may have positions in its copies."""
    flow = route.flow
    there = route.connections.admin(flow.target).topics()
    by_theirs: Callable[[str], str] = partial(wave.copy_of, flow.source)
    left = flow.target_topic if wave.rollback else by_theirs
    living = living_targets(route.lake, flow.name)
    known = route.connections.admin(flow.source).topics().keys() | {
        name for name in living if left(name) in there
    }
    names = sorted(
        name for name in known if flow.selection.selects(name) and re.fullmatch(wave.topics, name)
    )
    if not names:
        raise InputError(f"flow {flow.name} mirrors no topic that --topics {wave.topics} matches")
    pairs, lacking, beyond = list[Pair](), list[str](), dict[str, list[TopicAndPartition]]()
    for name in names:
        theirs, ours = wave.copy_of(flow.source, name), flow.target_topic(name)
        if theirs == ours:
            raise InputError(
                f"topic {name}: MirrorMaker 2's copy and ours are both called {ours}; the flow "
                "needs other names (`mirrorlake import --beside`), or say by --copies how "
                "MirrorMaker 2 names its copies"
            )
        missing = [topic for topic in (theirs, ours) if topic not in there]
        if missing:
            lacking.append(f"topic {name}: cluster {flow.target} has no {' and no '.join(missing)}")
            continue
        count = min(there[theirs].partitions, there[ours].partitions)
        pairs += [Pair(name, theirs, ours, partition) for partition in range(count)]
        origin, goal = (ours, theirs) if wave.rollback else (theirs, ours)
        beyond[origin] = [(goal, partition) for partition in range(count, there[goal].partitions)]
    if not pairs:
        raise InputError(f"{lacking[0]}; say by --copies how MirrorMaker 2 names its copies")
    mirrors = {one.target_topic for one in living.values()} | {*map(flow.target_topic, names)}
    others = set() if wave.rollback else there.keys() - mirrors - {*map(by_theirs, known)}
    return Copies(
        pairs, lacking, _with_records(route, beyond), unshown=_unshown(route, wave, others)
    )


def _unshown(route: Route, wave: Wave, others: Set[str]) -> Set[str]:
    """The target's topics that are, judging by names, MirrorMaker 2's copies of a wave's topics. If
    copies have the topics' own names, so do the target's own topics: then only names count that the
    source may have but does not describe."""
    flow = route.flow
    names = {copy: wave.topic_of(flow.source, copy) for copy in others}
    names = {
        copy: name
        for copy, name in names.items()
        if name and flow.selection.selects(name) and re.fullmatch(wave.topics, name)
    }
    alike = sorted(copy for copy, name in names.items() if copy == name)
    seen, missing = route.connections.admin(flow.source).identities(alike)
    return names.keys() - seen.keys() - missing


def _with_records(
    route: Route, beyond: Mapping[str, Sequence[TopicAndPartition]]
) -> Mapping[str, Sequence[TopicAndPartition]]:
    """Drop partitions that never had a record: a group that begins there skips none."""
    places = [place for some in beyond.values() for place in some]
    admin = route.connections.admin(route.flow.target)
    ends = admin.end_offsets(places, skip_silent=True) if places else {}
    return {topic: [at for at in some if ends.get(at) != 0] for topic, some in beyond.items()}
