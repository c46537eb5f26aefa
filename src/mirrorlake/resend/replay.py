"""A replay: staged records that a predicate picks, sent to another topic, or the same again."""

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirrorlake.errors import InputError
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.place import FolderPlace
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.resend import topics
from mirrorlake.resend.matches import REPLAY_HEADER, Matches, builtin_functions, of_replay
from mirrorlake.resend.note import Resend, ResentTopic, read_notes
from mirrorlake.resend.predicate import check_predicate
from mirrorlake.resend.sender import Sending, SendOutcome
from mirrorlake.resend.steps import OnSent, PlannedResend, Steps

#: How many records a dry run shows.
EXAMPLES = 5


@dataclass(frozen=True)
class ReplayRequest:
    """A request for a replay: the records of `topic`, as staged from `source`, that `where` picks,
    or the first `max_records` of them, sent to the topic `to` of the cluster `target`.

    `into_mirror` allows a topic `to` that a flow writes to; `start_over` begins a new replay even
    if one with the same request has not ended.
    """

    source: str
    topic: str
    where: str
    target: str
    to: str
    max_records: int | None = None
    into_mirror: bool = False
    start_over: bool = False
    private: bool = False

    @property
    def request(self) -> dict[str, Any]:
        """What identifies a replay, as noted; `PrivateWords` identifies private predicates."""
        where = None if self.private else self.where
        return {"topic": self.topic, "where": where, "to": self.to, "max_records": self.max_records}


class Replay:
    """One replay over a lake that was opened by its topology file."""

    def __init__(self, deployment: Deployment, stage: StageFiles, asked: ReplayRequest) -> None:
        self._lake, self._connections = deployment.lake, deployment.connections
        self._asked, self._steps = asked, Steps(deployment, stage, asked.target)
        self._words = PrivateWords(self._lake.checkpoints)

    def plan(self, examples: int = 0) -> PlannedResend:
        """What would be sent, with first records as examples. Raises InputError if impossible."""
        asked, steps = self._asked, self._steps
        topics.check_name(asked.to)
        check_predicate(asked.where, builtin_functions(self._lake.spark))
        makes = self._target()
        zone = self._lake.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        matches = Matches(self._lake, asked.source, asked.topic, asked.where)
        known = self._known()
        if known is not None and not asked.start_over:
            steps.check_can_go_on(known, zone)
            firsts = matches.examples(examples) if examples else []
            return PlannedResend(known, makes, True, examples=firsts)
        ranges = matches.ranges()
        if asked.max_records is not None:
            ranges = matches.first(ranges, asked.max_records)
        if ranges and not makes and not asked.into_mirror:
            topics.check_kept(steps.admin, {asked.to: min(ranges.values())})
        parts = (ResentTopic(asked.topic, asked.to, tuple(ranges)),)
        resend = steps.new("replay", asked.source, asked.request, parts, zone)
        shown = min(examples, resend.records)
        return PlannedResend(resend, makes, False, known, matches.examples(shown) if shown else [])

    def _known(self) -> Resend | None:
        """The same replay if it has begun and not ended. Raises InputError if unknown."""
        begun = self._steps.find_all("replay", self._asked.source, self._asked.request)
        if self._asked.private:
            return self._words.same(begun, self._asked.where, self._asked.start_over)
        return begun[0] if begun else None

    def _target(self) -> tuple[TopicInfo, ...]:
        """The target topic if it is missing. Raises InputError if it must not be written to."""
        asked, steps = self._asked, self._steps
        with steps.stage.reading() as index:
            partitions = index.topics(asked.source).get(asked.topic, {}).keys()
        if not partitions:
            raise InputError(
                f"the lake has no records of topic {asked.topic} of cluster {asked.source}"
            )
        written = topics.written_by_flows(
            self._connections.topology, asked.target, steps.staged_topics()
        )
        if asked.to in written and not asked.into_mirror:
            raise InputError(
                f"flow {written[asked.to]} writes to topic {asked.to} of cluster {asked.target}, "
                "where replayed records would come out of order, and twice; name another topic, "
                "or say --into-mirror"
            )
        state = steps.event_log.states.newest(asked.source).get(asked.topic)
        stated = topics.Stated(steps.admin)
        made = stated.topic(asked.to, state, max(partitions) + 1, topics.made_with(state))
        there = steps.admin.topics().get(asked.to)
        topics.check_partitions(there, made.partitions, asked.topic)
        return (made,) if there is None else ()

    def run(
        self,
        stop: threading.Event,
        rate: int | None,
        report: Callable[[BatchReport], None],
        on_sent: OnSent,
    ) -> tuple[PlannedResend, SendOutcome]:
        """Send, or continue a killed replay. Raises InputError, LeaseTaken, ReplicationError."""
        asked = self._asked
        with Lease(self._lake, f"replay of {asked.topic} to {asked.to} on {asked.target}"):
            planned = self.plan()
            number = planned.resend.id
            if not planned.resend.records:
                return planned, SendOutcome(complete=True)
            sending = Sending(
                of_replay(asked.topic, asked.where, number),
                (REPLAY_HEADER, number.encode()),
                rate,
                report,
            )
            if asked.private and not planned.continued:
                self._words.note(number, asked.where)
            planned, outcome = self._steps.carry_out(planned, sending, stop, on_sent=on_sent)
            self._words.delete_except(
                {resend.id for resend in read_notes(self._lake.ask("resends", kind="replay"))}
            )
            return planned, outcome


class PrivateWords:
    """Predicates of private replays, which are in no table: a predicate that picks a person's
    records may itself be personal data. Until a replay has ended, a file beside the lake's
    checkpoints has the SHA-256 of its predicate, so that only the same command continues it."""

    def __init__(self, checkpoints: Path) -> None:
        self._folder = checkpoints / "private-replays"

    def note(self, number: str, where: str) -> None:
        """Note the predicate of a replay, by its id, before the replay is noted as begun."""
        FolderPlace(self._folder / number).write(_digest(where).encode())

    def same(self, begun: Iterable[Resend], where: str, start_over: bool) -> Resend | None:
        """The first of some private replays with this predicate; None if there is none.

        If that cannot be known, raises InputError, or, with `start_over`, assumes the same one.
        """
        for resend in begun:
            try:
                known = (self._folder / resend.id).read_text(encoding="utf-8")
            except FileNotFoundError as error:
                if start_over:
                    return resend
                raise InputError(
                    f"{resend.name} has not ended, and whether it was asked for with this "
                    f"predicate is not known any more, since {self._folder / resend.id} is gone: "
                    "start over with --start-over"
                ) from error
            if known == _digest(where):
                return resend
        return None

    def delete_except(self, begun: Collection[str]) -> None:
        """Remove the files of all replays but those with these ids, which have not ended."""
        for file in self._folder.iterdir() if self._folder.is_dir() else ():
            if file.name not in begun:
                file.unlink(missing_ok=True)


def _digest(where: str) -> str:
    return hashlib.sha256(where.encode()).hexdigest()
