"""Sending again from the stage: the part of an open lake that replays and restores."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Event
from typing import TYPE_CHECKING, Any

from mirrorlake.config.topology_file import nearest
from mirrorlake.errors import InputError
from mirrorlake.extras import needs
from mirrorlake.library.flows import Opened
from mirrorlake.library.internals import Internals
from mirrorlake.library.resend_answers import planned_answer, sent_answer, together, with_extras
from mirrorlake.library.resent import Resent
from mirrorlake.library.store_refusals import store_in_words

if TYPE_CHECKING:  # what only Spark needs is imported by who uses it
    from mirrorlake.lake.stage_index import StageFiles
    from mirrorlake.produce.batch_report import BatchReport
    from mirrorlake.resend.cut import Moment
    from mirrorlake.resend.sender import SendOutcome
    from mirrorlake.resend.steps import PlannedResend, Told

#: Called after each batch with how many records this call has sent.
ReportSent = Callable[[int], None]


@store_in_words
class Resends(Opened):
    """What `OpenLake` can send again."""

    def replay(
        self,
        topic: str,
        where: str,
        to: str,
        *,
        source: str | None = None,
        cluster: str | None = None,
        max_records: int | None = None,
        rate: int | None = None,
        into_mirror: bool = False,
        start_over: bool = False,
        private: bool = False,
        dry_run: bool = False,
        report: ReportSent | None = None,
        answered: Callable[[Resent], None] | None = None,
        stop: Event | None = None,
    ) -> Resent:
        """Send staged records of a topic that a predicate picks to a topic: in their order, each
        once, also when it is killed and called again.

        Args:
            topic: the topic, named as at its source.
            where: a condition in Spark's SQL about the columns of `records`; it has to give the
                same answer each time.
            to: the topic that gets them; made if missing.
            source: the cluster that they were read from; may be left out where only one has such a
                topic.
            cluster: the cluster to send them to; may be left out where flows from there lead to
                only one.
            max_records: only the first ones, in the order of partition and offset.
            rate: at most so many records a second, on average.
            into_mirror: let `to` be a topic that a flow writes to.
            start_over: start over, though the same replay has begun and not ended.
            private: keep the predicate out of the lake's tables; to go on, say so again.
            dry_run: only say how many, and show the first ones.
            report: called after each batch.
            answered: called with the answer once all is sent, before it is noted that the replay
                has ended: the same call is a new replay from then on, until then it answers anew.
            stop: set it to end after the batch in hand; for None an interrupt does.

        Raises:
            InputError: it cannot be done so; nothing was done.
            ClusterUnusable: the target does not answer.
            LeaseTaken: another process replays the same topic to there.
            ReplicationError: the target refused records.
        """
        from mirrorlake.lake.stage_index import StageFiles
        from mirrorlake.library.replicating import stopping

        with needs("spark"):
            from mirrorlake.resend.replay import EXAMPLES, Replay, ReplayRequest

        _check_rate(rate)
        if max_records is not None and max_records < 1:
            raise InputError("the number of records has to be above 0")
        known = self.internals
        _check_clusters(known, source, cluster)
        stage = StageFiles(known.tables)
        source = source or _source_of(known, stage, topic)
        asked = ReplayRequest(
            source,
            topic,
            where,
            target=cluster or _target_of(known, source),
            to=to,
            max_records=max_records,
            into_mirror=into_mirror,
            start_over=start_over,
            private=private,
        )
        replay = Replay(known.deployment, stage, asked)
        if dry_run:
            return planned_answer(replay.plan(EXAMPLES))

        told = _telling(answered, sent_answer)
        with stopping(stop) as ending, _in_a_sentence("the replay"):
            planned, outcome = replay.run(ending, rate, _counting(report), told)
        return sent_answer(planned, outcome)

    def replay_parked(
        self,
        flow: str | None = None,
        topic: str | None = None,
        *,
        rate: int | None = None,
        start_over: bool = False,
        dry_run: bool = False,
        report: ReportSent | None = None,
        stop: Event | None = None,
    ) -> Resent:
        """Send parked records to their flows' own topics, once their limits were raised: out of
        order, each once. What is refused again stays parked.

        Args:
            flow: of this flow; of all flows of the file for None.
            topic: of this topic, named as at the source; of all for None.
            rate: at most so many records a second, on average.
            start_over: start over, though the same replay has begun and not ended.
            dry_run: only say how many.
            report: called after each batch.
            stop: set it to end after the batch in hand; for None an interrupt does.

        Raises:
            InputError: a target topic is not there.
            ClusterUnusable: a target does not answer.
            LeaseTaken: another process does the same.
            ReplicationError: the target refused something else than single records.
        """
        from mirrorlake.lake.stage_index import StageFiles
        from mirrorlake.library.replicating import stopping

        with needs("spark"):
            from mirrorlake.resend.parked import ParkedReplay, ParkedReplayRequest

        _check_rate(rate)
        known = self.internals
        names = [flow] if flow is not None else list(known.topology.flows)
        stage, count, replays = StageFiles(known.tables), _counting(report), []
        deployment = known.deployment
        with stopping(stop) as ending, _in_a_sentence("the replay"):
            for resolved in map(known.topology.flow, names):
                asked = ParkedReplayRequest(resolved, topic, start_over)
                replay = ParkedReplay(deployment, stage, asked)
                if dry_run:
                    replays.append(planned_answer(replay.plan()))
                else:
                    replays.append(sent_answer(*replay.run(ending, rate, count)))
        return together(replays, dry_run)

    def restore(
        self,
        source: str,
        target: str,
        topics: Sequence[str] = (),
        *,
        as_of: datetime | None = None,
        below: Mapping[tuple[str, int], int] | None = None,
        extras: Collection[str] = (),
        rename: str = "identity",
        compacted: bool = False,
        start_over: bool = False,
        dry_run: bool = False,
        report: ReportSent | None = None,
        answered: Callable[[Resent], None] | None = None,
        stop: Event | None = None,
    ) -> Resent:
        """Send whole topics from the stage to a cluster that has nothing in them: as they were, in
        their order, in the same partitions, each record once, also when it is killed and called
        again. The source is asked for nothing.

        Args:
            source: the cluster that the topics were read from; it may be gone.
            target: the cluster to make them on; the source's alias where that is the one to be
                filled again.
            topics: patterns of whole names; all that the lake has for none.
            as_of: a time: what the lake had by then, and what came later that is stamped with a
                time up to it. A transaction of the source is there with all of its records or with
                none.
            below: by (topic, partition) the offset behind the last one that is restored; a
                partition that is not named is restored whole.
            extras: some of "configs", "acls" and "groups": what belongs to topics beside their
                records, as it was; groups read on exactly behind what they had committed.
            rename: how topics are named at the target, as a flow's `policy`.
            compacted: only the last value of each key of a partition, and records without a key.
            start_over: start over, though the same restore has begun and not ended.
            dry_run: only say what would be done.
            report: called after each batch.
            answered: called with the answer once all is done, before it is noted that the restore
                has ended: from then on the same call finds topics that hold records, until then it
                answers anew.
            stop: set it to end after the batch in hand; for None an interrupt does.

        Raises:
            InputError: it cannot be done so, or a topic at the target holds records; nothing was
                done.
            ClusterUnusable: the target does not answer.
            LeaseTaken: another process restores to there.
            ReplicationError: the target refused a topic or records.
        """
        from mirrorlake.lake.stage_index import StageFiles
        from mirrorlake.library.replicating import stopping
        from mirrorlake.resend.extras import ALL

        with needs("spark"):
            from mirrorlake.resend.cut import RestoreRequest
            from mirrorlake.resend.restore import Restore

        if as_of is not None and below:
            raise InputError("name a time or offsets, not both")
        for name in extras:
            if name not in ALL:
                raise InputError(
                    f"{name} cannot be restored{nearest(name, ALL)}; what can is {', '.join(ALL)}"
                )
        known = self.internals
        _check_clusters(known, source, target)
        offsets = dict(below or {})
        until_ms = None if as_of is None else int(as_of.timestamp() * 1_000)
        words: dict[str, Any] = {} if until_ms is None else {"as_of_ms": until_ms}
        if offsets:
            words = {"below": [[*place, end] for place, end in sorted(offsets.items())]}
        asked = RestoreRequest(
            source,
            target,
            topics=tuple(topics) or (".*",),
            rename=rename,
            words=words,
            compacted=compacted,
            start_over=start_over,
            extras=frozenset(extras),
            until_ms=until_ms,
        )
        restore = Restore(known.deployment, StageFiles(known.tables), asked)

        def cut() -> "Moment":
            return restore.below(offsets) if until_ms is None else restore.as_of(until_ms)

        def answer(planned: "PlannedResend", outcome: "SendOutcome") -> Resent:
            sent, reached = sent_answer(planned, outcome), restore.reached(planned.resend)
            return with_extras(sent, outcome.extras, reached)

        if dry_run:
            planned = restore.plan(cut)
            done, reached = restore.plan_extras(planned.resend), restore.reached(planned.resend)
            return with_extras(planned_answer(planned), done, reached)
        told = _telling(answered, answer)
        with stopping(stop) as ending, _in_a_sentence("the restore"):
            planned, outcome = restore.run(cut, ending, _counting(report), told)
        return answer(planned, outcome)


@contextmanager
def _in_a_sentence(what: str) -> Iterator[None]:
    """Say what a broker answered, that no other place reports, as an error of ours."""
    from confluent_kafka import KafkaException

    from mirrorlake.spark.causes import as_mirrorlake_error

    try:
        yield
    except KafkaException as error:
        raise as_mirrorlake_error(error, what) from error


def _telling(
    answered: Callable[[Resent], None] | None,
    answer: "Callable[[PlannedResend, SendOutcome], Resent]",
) -> "Told":
    """Gives the answer to who waits for it."""

    def told(planned: "PlannedResend", outcome: "SendOutcome") -> None:
        if answered is not None:
            answered(answer(planned, outcome))

    return told


def _check_rate(rate: int | None) -> None:
    if rate is not None and rate < 1:
        raise InputError("the rate has to be above 0 records a second")


def _check_clusters(known: Internals, source: str | None, target: str | None) -> None:
    """Raise InputError for a cluster that the file has not, and ClusterUnusable for a target that
    does not answer: before Spark starts, so that a failure is reported within seconds."""
    for alias in (source, target):
        if alias is not None and alias not in known.topology.clusters:
            there = known.topology.clusters
            raise InputError(f"there is no cluster {alias}{nearest(alias, there)}")
    if target is not None:
        known.connections.admin(target).cluster_id()


def _source_of(known: Internals, stage: "StageFiles", topic: str) -> str:
    """The one cluster of which the lake has a topic. Raises InputError where there is none, or more
    than one."""
    with stage.reading() as index:
        aliases = [alias for alias in known.topology.clusters if topic in index.topics(alias)]
    if len(aliases) == 1:
        return aliases[0]
    if not aliases:
        raise InputError(f"the lake has no records of a topic {topic}")
    raise InputError(
        f"the lake has a topic {topic} of clusters {' and '.join(aliases)}; say which one with "
        "--from"
    )


def _target_of(known: Internals, source: str) -> str:
    """The one cluster that flows from a source lead to. Raises InputError where there is none, or
    more than one."""
    topology = known.topology
    targets = {flow.target for flow in map(topology.flow, topology.flows) if flow.source == source}
    if len(targets) != 1:
        raise InputError(
            f"say with --cluster which one of {', '.join(topology.clusters)} gets the records"
        )
    return targets.pop()


def _counting(report: ReportSent | None) -> "Callable[[BatchReport], None]":
    sent = 0

    def count(batch: "BatchReport") -> None:
        nonlocal sent
        sent += batch.record_count
        if report is not None:
            report(sent)

    return count
