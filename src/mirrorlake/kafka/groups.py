"""Consumer groups of a cluster: which there are, their positions, and setting those (KIP-222, KIP-396, KIP-709).

A process of its own asks what a group's coordinator has to answer. An AdminClient (librdkafka 2.16, its pull request
5397) aborts its process when that coordinator is away at that moment, whether it lists positions or describes groups,
and to look first leaves a gap. `Consumer.committed`, which is safe, wants a client with threads and connections for
each group, 80 ms each. So the fast way is taken where a crash costs one round and not the replicator: 500 groups in
0.6 s, one request a group.
"""

import json
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException

from mirrorlake.core.groups import Committed
from mirrorlake.core.survey import Key
from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.admin import ANSWER_SECONDS, ClusterAdmin
from mirrorlake.kafka.refusals import reason_of

logger = logging.getLogger(__name__)

#: How long one request to the process may take, however many groups it is about, seconds.
PROCESS_SECONDS = 120.0


@dataclass(frozen=True)
class Listing:
    """Groups by id with their state (as Kafka names it: EMPTY, STABLE, ...); `errors` of brokers that did not tell."""

    states: Mapping[str, str]
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """Positions by group and (topic, partition); for groups that were not answered, why not."""

    positions: Mapping[str, Mapping[Key, Committed]]
    errors: Mapping[str, str] = field(default_factory=dict)


class GroupAdmin:
    """The consumer groups of one cluster. Share and streams groups are not among them: they have no such positions.

    Every call raises ClusterUnreachable or AuthenticationFailed when nobody answers. May be used by many threads.
    """

    def __init__(self, admin: ClusterAdmin, client: Mapping[str, str | int | bool]) -> None:
        self._admin = admin
        self._client = dict(client)
        self._use = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def listing(self) -> Listing:
        """All consumer groups of every type that the brokers list, the new protocol's (KIP-848) too."""
        self._admin.cluster_id()  # tells who refused us, or that nobody is there, better and sooner than a listing
        try:
            found = self._admin.client.list_consumer_groups(request_timeout=ANSWER_SECONDS).result()
        except KafkaException as error:
            raise self._silent(reason_of(error.args[0])) from error
        states = {item.group_id: item.state.name for item in found.valid or ()}
        return Listing(states, tuple(reason_of(error.args[0]) for error in found.errors or ()))

    def positions(self, groups: Iterable[str]) -> Told:
        """What groups have committed; a group that is not there has no positions. One request a group."""
        wanted = sorted(set(groups))
        if not wanted:
            return Told({})
        found = self._ask("offsets", wanted)
        return Told(
            {
                group: {(topic, partition): Committed(offset, metadata) for topic, partition, offset, metadata in items}
                for group, items in found["positions"].items()
            },
            found["errors"],
        )

    def move(self, moves: Mapping[str, Mapping[Key, Committed]]) -> dict[tuple[str, str, int], str]:
        """Set positions, with their metadata; returns what was refused and why, by (group, topic, partition).

        The brokers refuse this to groups with members (UNKNOWN_MEMBER_ID).
        """
        if not moves:
            return {}
        document = {
            group: [[topic, partition, *position] for (topic, partition), position in items.items()]
            for group, items in moves.items()
        }
        refused = self._ask("alter", document)
        return {(group, topic, partition): why for group, items in refused.items() for topic, partition, why in items}

    def rights(self, group: str) -> frozenset[str] | None:
        """The operations (READ, ...) that the client is allowed on a group (KIP-430); none when it may not even be
        described, None when the cluster does not tell."""
        operations = self._ask("rights", group)
        return None if operations is None else frozenset(operations)

    def close(self) -> None:
        """End the process; the next call starts another."""
        with self._use:
            if self._process is not None:
                _end(self._process)
                self._process = None

    def _ask(self, what: str, groups: object) -> Any:
        with self._use:
            process = self._running()
            # Whoever does not answer at all is ended; then `readline` returns.
            limit = threading.Timer(PROCESS_SECONDS, process.kill)
            limit.start()
            try:
                line = _exchange(process, {"do": what, "groups": groups})
            finally:
                limit.cancel()
            if not line:
                self._process = None
                _end(process)
        answer = json.loads(line) if line else {"error": "the client died while a coordinator was away"}
        if "error" in answer:
            raise self._silent(answer["error"])
        return answer["answer"]

    def _silent(self, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(
            f"cluster {self._admin.alias} did not answer about consumer groups ({why}); check that its brokers run",
            alias=self._admin.alias,
            address=self._admin.address,
        )

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "mirrorlake.kafka.groups_worker"]
            # A session of its own: Ctrl-C is for us, and the process ends with its stdin.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            weakref.finalize(self, _end, self._process)
            _send(self._process, {**self._client, "mirrorlake.seconds": ANSWER_SECONDS})
        return self._process


def _exchange(process: "subprocess.Popen[str]", document: object) -> str:
    assert process.stdout is not None
    try:
        _send(process, document)
        return process.stdout.readline()
    except OSError as error:
        logger.debug("the process for consumer groups is gone: %s", error)
        return ""


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
            logger.debug("closing: %s", error)  # what was not written yet has no reader any more
