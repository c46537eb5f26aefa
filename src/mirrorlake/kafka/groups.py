"""Consumer groups of a cluster: list them, query and set their positions (KIP-222, KIP-396,
KIP-709).

A separate process sends the requests that a group's coordinator answers: an AdminClient (librdkafka
2.16, its pull request 5397) aborts its process when that coordinator is away at that moment, and
checking first leaves a gap. `Consumer.committed` is safe, but needs a client for each group, 80 ms
each; this takes 0.6 s for 500 groups. A crash costs one turn of some groups: answers from before
are kept, and unanswered groups come last the next time, so a bad coordinator holds up only its own
groups.
"""

import json
import logging
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException

from mirrorlake.attempts import attempts
from mirrorlake.errors import ClusterUnreachable, ClusterUnusable
from mirrorlake.kafka.access import hidden
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.group_answers import GroupAnswers
from mirrorlake.kafka.groups_worker import TOO_LATE
from mirrorlake.kafka.refusals import reason_of
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import COORDINATOR_MOVES
from mirrorlake.offsets.positions import Committed, TopicAndPartition

logger = logging.getLogger(__name__)

#: Kafka's own topic of groups and positions: a partition's leader coordinates its groups.
POSITIONS_TOPIC = "__consumer_offsets"
#: How long a request to the process may take, for any groups, s: more than it gives itself.
PROCESS_SECONDS = 120.0
#: The error of newer brokers for a group that does not exist; older ones describe it as dead.
_NO_SUCH_GROUP = frozenset({"GROUP_ID_NOT_FOUND"})
_DIED = "the client died while a coordinator was away"


@dataclass(frozen=True)
class Listing:
    """Groups by id with their state (as Kafka names it: EMPTY, STABLE, ...).

    `errors` say why there may be more groups: brokers that did not answer, and coordinators without
    a broker now. A group that is not listed is gone only if its coordinator says so: then
    `positions` has it with no position. Coordinators without a broker are seen only where the
    cluster `shows_homes`: the topic of positions, which takes DESCRIBE on it.
    """

    states: Mapping[str, str]
    errors: tuple[str, ...] = ()
    shows_homes: bool = True


@dataclass(frozen=True)
class GroupPositions:
    """Positions by group and (topic, partition); `errors` has the reason for groups that were not
    answered, in whole or in part."""

    positions: Mapping[str, Mapping[TopicAndPartition, Committed]]
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_partition(self) -> dict[tuple[str, str, int], Committed]:
        """Positions by (group, topic, partition)."""
        return {
            (group, *place): position
            for group, positions in self.positions.items()
            for place, position in positions.items()
        }


@dataclass(frozen=True)
class GroupMembers:
    """The members of groups, each by its client id, and whether it has a partition; a group that
    does not exist has none. `errors` has the reason for groups that were not answered."""

    members: Mapping[str, Sequence[tuple[str, bool]]]
    errors: Mapping[str, str] = field(default_factory=dict)


class GroupAdmin:
    """The consumer groups of one cluster. None are share or streams groups (`other_kinds`).

    Calls raise ClusterUnreachable or AuthenticationFailed if no broker answers. Thread-safe.
    """

    def __init__(self, admin: ClusterAdmin, client: LiveSettings[str | int | bool]) -> None:
        self._admin = admin
        self._live = client
        self._use = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._slow: set[str] = set()  # groups whose coordinators did not answer the last time
        self._answers = GroupAnswers()

    def listing(self) -> Listing:
        """All consumer groups that the brokers list, those of the new protocol (KIP-848) too."""
        # reports a refusal, or that no broker is there, better and sooner than a listing does
        topics = self._admin.topics()
        try:
            asked = self._admin.client.list_consumer_groups(request_timeout=ANSWER_SECONDS)
            listed = asked.result()
        except KafkaException as error:
            raise self._silent(reason_of(error.args[0])) from error
        states = {group.group_id: group.state.name for group in listed.valid or ()}
        # These are plain errors, although confluent-kafka's documentation calls them exceptions.
        errors = [reason_of(getattr(error, "args", [error])[0]) for error in listed.errors or ()]
        homes = topics.get(POSITIONS_TOPIC)
        homeless = sorted(homes.leaderless) if homes is not None else []
        if homeless:
            named = ", ".join(str(number) for number in homeless[:5])
            errors.append(
                f"{len(homeless)} partitions of {POSITIONS_TOPIC} have no leader, such as {named}"
            )
        return Listing(states, tuple(errors), homes is not None)

    def hides_homes(self) -> bool:
        """Whether the topic of positions, which the cluster does not list, may be there: without
        DESCRIBE on it Kafka does not say. A cluster that never had a group has none."""
        try:
            return bool(hidden(self._admin.client, [POSITIONS_TOPIC]))
        except KafkaException as error:
            logger.info("cluster %s: %s", self._admin.alias, reason_of(error.args[0]))
            return True

    def other_kinds(self, listing: Listing) -> frozenset[str] | None:
        """Groups that exist but are not listed, since they are not consumer groups: share groups
        (KIP-932) and streams groups (KIP-1071). librdkafka 2.16 does not tell them apart. None
        without an answer.

        Its old listing names groups of all kinds, and calls those it does not understand dead.
        """
        try:
            listed = self._admin.client.list_groups(timeout=ANSWER_SECONDS)
        except KafkaException as error:
            logger.info(
                "cluster %s: groups of other kinds: %s", self._admin.alias, reason_of(error.args[0])
            )
            return None
        return frozenset(
            group.id for group in listed if group.state == "Dead" and group.id not in listing.states
        )

    def positions(self, groups: Iterable[str]) -> GroupPositions:
        """What groups have committed; a group that does not exist has no positions. One request per
        group. Unchanged positions are the same objects as before, for all callers."""
        answers, why = self._ask("offsets", dict.fromkeys(groups))
        return GroupPositions(
            {
                group: answer["positions"]
                for group, answer in answers.items()
                if "positions" in answer
            },
            why,
        )

    def members(self, groups: Iterable[str]) -> GroupMembers:
        """The members of groups. One request per group."""
        answers, why = self._ask("members", dict.fromkeys(groups))
        gone = {group for group in why if answers.get(group, {}).get("code") in _NO_SUCH_GROUP}
        return GroupMembers(
            {
                **dict.fromkeys(gone, ()),
                **{
                    group: [(client, has) for client, has in answer["members"]]
                    for group, answer in answers.items()
                    if "members" in answer
                },
            },
            {group: text for group, text in why.items() if group not in gone},
        )

    def move(
        self, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]
    ) -> dict[tuple[str, str, int], str]:
        """Set positions, with their metadata; return the refusals, each with its reason, by (group,
        topic, partition).

        Brokers refuse this for groups with members (UNKNOWN_MEMBER_ID). A coordinator that did not
        answer in time may have done it all the same.
        """
        document = {
            group: [[topic, partition, *position] for (topic, partition), position in items.items()]
            for group, items in moves.items()
        }
        answers, why = self._ask("alter", document)
        silent = {(group, *place): text for group, text in why.items() for place in moves[group]}
        refused = {
            (group, topic, partition): text
            for group, answer in answers.items()
            for topic, partition, text in answer.get("refused", ())
        }
        return {**silent, **refused}

    def rights(self, group: str) -> frozenset[str] | None:
        """The operations (READ, ...) that the client is allowed on a group (KIP-430); empty if it
        may not even describe the group, None if the cluster does not report them.

        A process that was started for this alone is ended: a cluster without groups needs none.
        """
        was_running = self._process is not None
        for last in attempts(ANSWER_SECONDS, 0.2):
            answers, why = self._ask("rights", {group: None})
            answer = answers[group]
            if last or answer.get("code") not in COORDINATOR_MOVES:
                break
        if not was_running:
            self.close()
        if "operations" in answer:
            operations = answer["operations"]
            return None if operations is None else frozenset(operations)
        if answer.get("code") == "GROUP_AUTHORIZATION_FAILED":
            return frozenset()
        raise self._silent(why[group])

    def close(self) -> None:
        """End the process; the next call starts another."""
        with self._use:
            if self._process is not None:
                _end(self._process)
                self._process = None

    def _ask(
        self, what: str, requests: Mapping[str, object]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The process's answer for each group, and reasons for groups not fully answered.

        If the process dies it is started again for the groups that are left. Raises
        ClusterUnreachable if no group was answered.
        """
        answers: dict[str, Any] = {}
        end = time.monotonic() + PROCESS_SECONDS
        with self._use:
            if what == "offsets":
                self._answers.keep(requests.keys())
            order = sorted(requests, key=lambda group: (group in self._slow, group))
            for _ in range(2):
                left = {group: requests[group] for group in order if group not in answers}
                if left and time.monotonic() < end:
                    self._exchange({"do": what, "groups": left}, answers, end - time.monotonic())
            why = {group: answers.get(group, {"error": _DIED}).get("error") for group in order}
            errors = {group: text for group, text in why.items() if text is not None}
            late = {group for group, text in errors.items() if text in (TOO_LATE, _DIED)}
            self._slow = (self._slow - requests.keys()) | (errors.keys() - late)
            # A refused login looks like a silent broker here.
            if errors and self._live.renewed(refused=True) and self._process is not None:
                _end(self._process)
                self._process = None
        if requests and not answers:
            raise self._silent(_DIED)
        return answers, errors

    def _exchange(self, document: object, answers: dict[str, Any], seconds: float) -> None:
        """Send a request, collect the answers; a process that did not complete it is discarded."""
        process = self._running()
        # A process that does not answer at all is killed; then there are no more lines.
        limit = threading.Timer(seconds, process.kill)
        limit.start()
        try:
            _send(process, document)
            for line in process.stdout or ():
                about = self._answers.read(line)
                if about is None:
                    return
                answers[about[0]] = about[1]
        except (OSError, ValueError) as error:  # it died, perhaps in the middle of a line
            logger.debug("the process for consumer groups is gone: %s", error)
        finally:
            limit.cancel()
        self._process = None
        _end(process)

    def _silent(self, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(
            f"cluster {self._admin.alias} did not answer about consumer groups ({why}); check that "
            "its brokers run",
            alias=self._admin.alias,
        )

    def _running(self) -> "subprocess.Popen[str]":
        if self._live.renewed() and self._process is not None:
            _end(self._process)
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "mirrorlake.kafka.groups_worker"]
            # A session of its own: Ctrl-C is for us, and the process ends with its stdin.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            weakref.finalize(self, _end, self._process)
            _send(self._process, {**self._live.now, "mirrorlake.seconds": ANSWER_SECONDS})
        return self._process


def positions_or_errors(admin: GroupAdmin, groups: Collection[str]) -> GroupPositions:
    """What groups have committed; if no broker answers, each group has that as its error."""
    try:
        return admin.positions(groups)
    except ClusterUnusable as error:
        return GroupPositions({}, dict.fromkeys(groups, str(error)))


def _send(process: "subprocess.Popen[str]", document: object) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(document) + "\n")
    process.stdin.flush()


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        try:
            if stream is not None:
                stream.close()
        except OSError as error:
            logger.debug("closing: %s", error)  # unwritten data no longer has a reader
