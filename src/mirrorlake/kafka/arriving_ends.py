"""Log ends as far as leaders have answered by now: a silent leader does not hold up the others.

librdkafka delivers the answers to a question together, when the last of its leaders has answered,
or after ANSWER_SECONDS. Metadata names a dead broker for some seconds, and one that only we cannot
reach for as long as that lasts.
"""

import math
import time
from collections.abc import Collection, Mapping
from concurrent.futures import TimeoutError as NotYet

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.admin_offsets import OffsetRequests
from mirrorlake.kafka.question import Question
from mirrorlake.offsets.positions import TopicAndPartition

#: How long to wait for an answer, seconds; then partitions are queried leader by leader, and later
#: answers count when they arrive.
HOLD_SECONDS = 1.0
#: After so many seconds a question is abandoned: its client may be gone.
_GIVEN_UP_SECONDS = 2 * ANSWER_SECONDS
#: How often the leaders of partitions are queried while some do not answer, seconds.
_LEARN_SECONDS = 2.0

_Ends = dict[TopicAndPartition, int]
#: The leader of partitions that answer late: a broker's address; None if it is unknown.
_Leader = tuple[str, int] | None


class ArrivingEnds:
    """Asks one cluster for last stable offsets, as often as its caller wants. For one thread."""

    def __init__(self, admin: ClusterAdmin) -> None:
        self._admin = admin
        self._open: list[_Question] = []
        #: Partitions that did not answer in time when last queried: these are not waited for.
        self._late: dict[TopicAndPartition, _Leader] = {}
        #: The leaders by the last answer. They are queried before they are needed: the broker that
        #: is asked may be the silent one.
        self._leaders: dict[TopicAndPartition, _Leader] = {}
        self._learning: Question[None] | None = None
        self._learn_from = 0.0
        #: When a broker last named an error instead of an end, by time.monotonic().
        self.refused_at = -math.inf

    def of(self, keys: Collection[TopicAndPartition]) -> _Ends:
        """The ends of some partitions: queried now, or, where a leader answers late, by the last
        question. Partitions without an answer are missing."""
        arrived = self._arrived()
        if self._learning is None or self._open and time.monotonic() >= self._learn_from:
            self._learn(keys)
        ends = {key: arrived[key] for key in keys if key in arrived}
        awaited = {key for question in self._open for key in question.keys}
        groups: dict[_Leader, list[TopicAndPartition]] = {}
        in_time: list[TopicAndPartition] = []
        if not (ends or awaited or self._late):
            return self._held(keys) if keys else {}
        for key in keys:
            if key in ends or key in awaited:
                continue
            if key in self._late:
                groups.setdefault(self._late[key], []).append(key)
            else:
                in_time.append(key)
        self._open += [self._asked(group, leader) for leader, group in groups.items()]
        return ends | self._held(in_time) if in_time else ends

    def _held(self, keys: Collection[TopicAndPartition]) -> _Ends:
        """Ask for partitions that should answer at once."""
        whole = self._asked(keys)
        whole.wait(time.monotonic() + HOLD_SECONDS)
        ends = self._taken(whole)
        if not whole.keys:
            return ends
        until = time.monotonic() + HOLD_SECONDS
        for question in self._by_leader(whole):
            question.wait(until)
            ends |= self._taken(question)
            self._late |= dict.fromkeys(question.keys, question.leader)
            if question.keys:
                self._open.append(question)
        return ends

    def _by_leader(self, whole: "_Question") -> "list[_Question]":
        """Ask a question again leader by leader; not with one leader, or none that is known."""
        groups: dict[_Leader, list[TopicAndPartition]] = {}
        for key in whole.keys:
            groups.setdefault(self._leaders.get(key), []).append(key)
        if len(groups) > 1:
            return [self._asked(each, leader) for leader, each in groups.items()]
        whole.leader = next(iter(groups))
        return [whole]

    def _learn(self, keys: Collection[TopicAndPartition]) -> None:
        """Query the leaders of partitions, without waiting."""
        known = {**dict.fromkeys(keys), **self._leaders}

        def learn() -> None:
            led = self._admin.leaders(known)
            self._leaders = {key: leader for leader, group in led.items() for key in group}

        if self._learning is None or self._learning.over:
            self._learn_from = time.monotonic() + _LEARN_SECONDS
            self._learning = Question("who leads partitions", learn, "")

    def _asked(self, keys: Collection[TopicAndPartition], leader: _Leader = None) -> "_Question":
        return _Question(self._admin.request_ends(keys), leader)

    def _arrived(self) -> _Ends:
        """The answers that have arrived to open questions."""
        questions, self._open, ends = self._open, [], _Ends()
        for question in questions:
            for key in question.leave(self._leaders):  # the new leader may answer sooner
                self._late.pop(key, None)
            keys = question.keys
            ends |= self._taken(question)
            if question.keys and not question.is_old():
                self._open.append(question)
            elif question.leader is None:  # their leaders have to be found again
                for key in keys:
                    self._late.pop(key, None)
        return ends

    def _taken(self, question: "_Question") -> _Ends:
        """The answers to a question that have arrived since it was last checked."""
        done, left = question.take(), question.left
        ends = self._admin.arrived(done)
        asked = [key for each in done for key in each.keys]
        if len(ends) < len(asked):  # some may have new leaders
            self.refused_at = time.monotonic()
            self._learn(asked)
        if left:
            ends = {key: end for key, end in ends.items() if key not in left}
        if self._late and question.in_time():
            for key in ends:
                self._late.pop(key, None)
        return ends


class _Question:
    """A question for partitions' ends, of one leader if known. `left` are no longer waited for."""

    def __init__(self, requests: OffsetRequests, leader: _Leader = None) -> None:
        self._requests, self.leader = list(requests), leader
        self.left = set[TopicAndPartition]()
        self._asked_at, self._answered_at = time.monotonic(), math.inf
        for last in self._requests[-1:]:
            last.future.add_done_callback(self._note)

    @property
    def keys(self) -> list[TopicAndPartition]:
        """The partitions without an answer."""
        return [key for each in self._requests for key in each.keys if key not in self.left]

    def _note(self, _future: object) -> None:
        """Note when it was answered; called by librdkafka's thread."""
        self._answered_at = time.monotonic()

    def wait(self, until: float) -> None:
        """Wait for all answers, at most until this time, by time.monotonic()."""
        for each in self._requests:
            try:
                each.future.exception(max(0.0, until - time.monotonic()))
            except NotYet:
                return

    def take(self) -> OffsetRequests:
        """Take the requests answered by now, whatever the answer is."""
        done = [each for each in self._requests if each.future.done()]
        self._requests = [each for each in self._requests if each not in done]
        return done

    def leave(self, leaders: Mapping[TopicAndPartition, _Leader]) -> set[TopicAndPartition]:
        """Stop waiting for partitions that have a new leader; return them."""
        if self.leader is None:
            return set()
        left = {key for key in self.keys if leaders.get(key) not in (None, self.leader)}
        self.left |= left
        return left

    def in_time(self) -> bool:
        """Whether it was answered within HOLD_SECONDS."""
        return self._answered_at - self._asked_at <= HOLD_SECONDS

    def is_old(self) -> bool:
        """Whether an answer is no longer to be expected."""
        return time.monotonic() - self._asked_at > _GIVEN_UP_SECONDS
