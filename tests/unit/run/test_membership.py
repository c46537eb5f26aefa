"""Of the processes of a group at most one works, whatever Kafka says, and whenever they stand
still."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mirrorlake.run.membership import Membership

SESSION = 10.0


@dataclass
class Coordinator:
    """The group as its coordinator has it: members by name, with when each was heard of last."""

    heard: dict[int, float] = field(default_factory=dict)
    owner: int | None = None

    def expire(self, now: float) -> None:
        for member in [m for m, at in self.heard.items() if now - at > SESSION]:
            self.leave(member)

    def leave(self, member: int) -> None:
        self.heard.pop(member, None)
        if self.owner == member:
            self.owner = None

    def deal(self) -> None:
        """Sticky: who has it keeps it."""
        if self.owner is None and self.heard:
            self.owner = min(self.heard)


class Processes(RuleBasedStateMachine):
    """Three processes that poll, stand still, and wake; news reach a process only when it polls."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.kafka = Coordinator()
        self.members = [Membership(SESSION) for _ in range(3)]
        self.known = [False] * 3  # whether the process believes that it is a member

    @rule(seconds=st.floats(0.1, 30.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.kafka.expire(self.now)
        self.kafka.deal()

    @rule(number=st.integers(0, 2), late=st.booleans())
    def a_process_polls(self, number: int, late: bool) -> None:
        """The heartbeat and what it answers; `late`: the news come with the next poll."""
        member = self.members[number]
        self.kafka.expire(self.now)
        there = number in self.kafka.heard
        member.polled(self.now)
        if self.known[number] and not there:
            if late:
                return
            member.lost()
        self.known[number] = True
        self.kafka.heard[number] = self.now
        self.kafka.deal()
        if self.kafka.owner == number and not member.has_partition:
            member.assigned(True)
        elif not member.joined:
            member.assigned(False)

    @rule(number=st.integers(0, 2))
    @precondition(lambda self: any(member.to_confirm for member in self.members))
    def a_process_commits(self, number: int) -> None:
        member = self.members[number]
        if member.to_confirm:
            self.kafka.expire(self.now)
            if self.kafka.owner == number:
                member.confirm(member.tenure)
            else:
                member.lost()
                self.known[number] = False

    @rule(number=st.integers(0, 2))
    def a_process_leaves(self, number: int) -> None:
        self.members[number].lost()
        self.known[number] = False
        self.kafka.leave(number)
        self.kafka.deal()

    @invariant()
    def at_most_one_works(self) -> None:
        working = [n for n, member in enumerate(self.members) if member.works(self.now)]
        assert len(working) <= 1, working
        assert not working or self.kafka.owner == working[0]


TestProcesses = Processes.TestCase
TestProcesses.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def working(at: float = 0.0) -> Membership:
    member = Membership(SESSION)
    member.polled(at)
    member.assigned(True)
    member.confirm(member.tenure)
    return member


def test_it_works_once_the_coordinator_has_taken_its_commit() -> None:
    member = Membership(SESSION)
    member.polled(0.0)
    assert not member.works(0.0)
    member.assigned(True)
    assert member.to_confirm
    assert not member.works(0.0)
    member.confirm(member.tenure)
    assert member.works(0.0)
    assert not member.to_confirm


def test_a_commit_of_an_earlier_tenure_confirms_nothing() -> None:
    member = working()
    before = member.tenure
    member.lost()
    member.assigned(True)
    member.confirm(before)
    assert not member.works(0.0)
    assert member.to_confirm


@settings(max_examples=20)
@given(st.floats(SESSION + 0.001, 1e6))
def test_who_stood_still_works_only_after_a_new_commit(seconds: float) -> None:
    member = working()
    assert not member.works(seconds)
    member.polled(seconds)
    assert not member.works(seconds)
    assert member.to_confirm
    member.confirm(member.tenure)
    assert member.works(seconds)


@settings(max_examples=20)
@given(st.floats(0.0, SESSION))
def test_who_was_heard_of_within_a_session_goes_on(seconds: float) -> None:
    member = working()
    member.polled(seconds)
    assert member.works(seconds)
    member.assigned(False)  # another one has joined, and nothing changes for this one
    assert member.works(seconds)


def test_who_lost_it_stands_by_once_the_group_has_dealt_anew() -> None:
    member = working()
    member.lost()
    assert not member.works(0.0)
    assert not member.joined
    member.assigned(False)
    assert member.joined
    assert not member.works(0.0)
