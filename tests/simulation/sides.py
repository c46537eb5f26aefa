"""The groups of a cluster, asked and moved as one of Kafka's are, and what goes wrong in that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.groups import GroupMembers, GroupPositions, Listing
from mirrorlake.offsets.positions import Committed, TopicAndPartition

Key = tuple[str, str, int]


class Killed(BaseException):
    """Stands for the end of the process by kill -9."""


class Faults:
    """What goes wrong in the next call of a kind: those of cluster, or lake, fail before their
    effect, or behind it, or are answered in part."""

    def __init__(self) -> None:
        self.armed: dict[str, tuple[str, int]] = {}

    def takes(self, call: str) -> str:
        """The fault of a call; it strikes once, behind so many calls that nothing happens to."""
        fault, calls = self.armed.pop(call, ("", 0))
        if calls:
            self.armed[call] = fault, calls - 1
        return "" if calls else fault


@dataclass
class Side:
    """The groups of a cluster."""

    name: str
    faults: Faults
    at: dict[str, dict[TopicAndPartition, Committed]] = field(default_factory=dict)
    active: set[str] = field(default_factory=set)
    moves: list[tuple[Key, int | None, int]] = field(default_factory=list)
    is_gone: bool = False

    def _answered(self, call: str) -> str:
        fault = self.faults.takes(f"{self.name} {call}")
        if self.is_gone or fault == "silent":
            raise ClusterUnreachable("it does not answer", alias=self.name)
        if fault == "killed":
            raise Killed
        return fault

    def listing(self) -> Listing:
        fault = self._answered("listing")
        states = {group: "STABLE" if group in self.active else "EMPTY" for group in self.at}
        if fault == "part":
            return Listing({name: states[name] for name in list(states)[1:]}, ("no answer",))
        return Listing(states)

    def other_kinds(self, _: Listing) -> frozenset[str]:
        return frozenset()

    def members(self, groups: Iterable[str]) -> GroupMembers:
        fault, wanted = self._answered("members"), list(groups)
        if fault == "part":
            return GroupMembers({}, dict.fromkeys(wanted, "no answer"))
        return GroupMembers({name: [("c", True)] * (name in self.active) for name in wanted})

    def positions(self, groups: Iterable[str]) -> GroupPositions:
        fault, wanted = self._answered("positions"), sorted(groups)
        known = {name: dict(self.at.get(name, {})) for name in wanted}
        if fault == "part" and wanted:
            known.pop(wanted[0])
            return GroupPositions(known, {wanted[0]: "no answer"})
        return GroupPositions(known)

    def move(
        self, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]
    ) -> dict[tuple[str, str, int], str]:
        fault = self._answered("move")
        refused = {}
        for group, positions in moves.items():
            for place, to in positions.items():
                if group in self.active or fault == "part":
                    refused[(group, *place)] = "UNKNOWN_MEMBER_ID"
                    continue
                before = self.at.setdefault(group, {}).get(place)
                self.moves.append(((group, *place), before and before.offset, to.offset))
                self.at[group][place] = to
        if fault == "lost answer":
            raise ClusterUnreachable("its answer was lost", alias=self.name)
        if fault == "killed behind":
            raise Killed
        return refused
