"""Sending staged records again: the part of an open lake that replays and restores."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Event
from typing import TYPE_CHECKING, Any

from mirrorlake.config.topology_file import nearest
from mirrorlake.errors import InputError
from mirrorlake.extras import needs
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.library.flows import Opened
from mirrorlake.library.internals import Internals
from mirrorlake.library.resend_answers import planned_answer, sent_answer, together, with_extras
from mirrorlake.library.resent import Resent
from mirrorlake.library.store_refusals import raises_lake_errors
from mirrorlake.naming.selection import matches_any

if TYPE_CHECKING:  # modules that need Spark are imported where they are used
    from mirrorlake.produce.batch_report import BatchReport
    from mirrorlake.resend.cut import Moment
    from mirrorlake.resend.sender import SendOutcome
    from mirrorlake.resend.steps import OnSent, PlannedResend

#: Called after each batch with the number of records that this call has sent.
ReportSent = Callable[[int], None]


@raises_lake_errors
class Resends(Opened):
    """`OpenLake`'s methods that send staged records again."""

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
        """Send the staged records of a topic that match a predicate to another topic: in order,
        each once, even if it is killed and called again.

        Args:
            topic: the topic, named as at its source.
            where: a condition in Spark's SQL on the columns of `records`; it must be deterministic.
            to: the topic to send them to; created if missing.
            source: the cluster that they were read from; optional if only one has such a topic.
            cluster: the cluster to send them to; optional if the flows from `source` lead to only
                one.
            max_records: only the first so many, in the order of partition and offset.
            rate: at most so many records a second, on average.
            into_mirror: allow `to` to be a topic that a flow writes to.
            start_over: start over, though the same replay has begun and not ended.
            private: keep the predicate out of the lake's tables; to continue such a replay, pass it
                again.
            dry_run: only count them, and show the first ones.
            report: called after each batch.
            answered: called with the answer once all is sent, before the lake records that the
                replay has ended. Until then the same call answers again; after that it is a new
                replay.
            stop: set it to end after the batch in hand; for None an interrupt does.

        Raises:
            InputError: the arguments do not fit; nothing was done.
            LakeError: there is no lake.
            ClusterUnusable: the target does not answer.
            LeaseTaken: another process replays to the same topic.
            ReplicationError: the target refused records.
        """
        from mirrorlake.library.replicating import stopping

        with needs("spark"):
            from mirrorlake.resend.replay import EXAMPLES, Replay, ReplayRequest

        _check_rate(rate)
        if max_records is not None and max_records < 1:
            raise InputError("the number of records has to be above 0")
        check_columns(where)
        known = self.internals
        _check_clusters(known, source, cluster)
        stage = StageFiles(known.tables)
        if source is None:
            source, *others = _sources_of(stage, known.topology.clusters, topic)
            if others:
                raise InputError(
                    f"the lake has a topic {topic} of clusters "
                    f"{' and '.join((source, *others))}; say which one with --from"
                )
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

        on_sent = _answer_callback(answered, sent_answer)
        with stopping(stop) as ending, _in_a_sentence("the replay"):
            planned, outcome = replay.run(ending, rate, _counting(report), on_sent)
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
        """Send parked records to their flows' target topics, once those accept them (a raised
        limit): out of order, each once. Records refused again stay parked.

        Args:
            flow: only records of this flow; None for all flows of the file.
            topic: only records of this topic, named as at the source; None for all.
            rate: at most so many records a second, on average.
            start_over: start over, though the same replay has begun and not ended.
            dry_run: count only.
            report: called after each batch.
            stop: set it to end after the batch in hand; for None an interrupt does.

        Raises:
            InputError: a target topic does not exist, or the lake has no records of `topic`.
            LakeError: there is no lake.
            ClusterUnusable: a target does not answer.
            LeaseTaken: another process does the same.
            ReplicationError: the target refused more than single records.
        """
        from mirrorlake.library.replicating import stopping

        with needs("spark"):
            from mirrorlake.resend.parked import ParkedReplay, ParkedReplayRequest

        _check_rate(rate)
        known = self.internals
        names = [flow] if flow is not None else list(known.topology.flows)
        flows = [known.topology.flow(name) for name in names]
        stage, count = StageFiles(known.tables), _counting(report)
        if topic is not None:
            _sources_of(stage, {resolved.source for resolved in flows}, topic)
        deployment = known.deployment
        replays: list[Resent] = []
        held: list[str] = []
        with stopping(stop) as ending, _in_a_sentence("the replay"):
            for resolved in flows:
                asked = ParkedReplayRequest(resolved, topic, start_over)
                replay = ParkedReplay(deployment, stage, asked)
                if dry_run:
                    replays += map(planned_answer, replay.plans())
                else:
                    replays += [sent_answer(*one) for one in replay.run(ending, rate, count)]
                held += replay.held()
        return together(replays, dry_run, held)

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
        """Send whole topics from the stage to a cluster where they are empty or missing: the
        records as they were, in order, in the same partitions, each once, even if it is killed and
        called again. The source is not asked.

        Args:
            source: the cluster that the topics were read from; it may be gone.
            target: the cluster to create them on; the source's own alias to refill that cluster.
            topics: patterns of whole names; all topics of the lake if empty.
            as_of: a time: restore what the lake had by then, and later records with timestamps up
                to it. A source transaction is restored whole or not at all.
            below: by (topic, partition) the end offset, exclusive; a partition that is not named is
                restored whole.
            extras: some of "configs", "acls" and "groups", to restore too, as they were; groups
                resume exactly at their committed positions.
            rename: how to name topics at the target, like a flow's `policy`.
            compacted: only the last value of each key in a partition, and records without a key.
            start_over: start over, though the same restore has begun and not ended.
            dry_run: change nothing.
            report: called after each batch.
            answered: called with the answer once all is done, before the lake records that the
                restore has ended. Until then the same call answers again; after that it finds
                topics that hold records.
            stop: set it to end after the batch in hand; for None an interrupt does.

        Raises:
            InputError: the arguments do not fit, or a topic at the target holds records; nothing
                was done.
            LakeError: there is no lake.
            ClusterUnusable: the target does not answer.
            LeaseTaken: another process restores to the same cluster.
            ReplicationError: the target refused a topic or records.
        """
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
        _check_selected(offsets, topics)
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
        on_sent = _answer_callback(answered, answer)
        with stopping(stop) as ending, _in_a_sentence("the restore"):
            planned, outcome = restore.run(cut, ending, _counting(report), on_sent)
        return answer(planned, outcome)


@contextmanager
def _in_a_sentence(what: str) -> Iterator[None]:
    """Raise a broker's error that is not reported elsewhere as one of our own."""
    from confluent_kafka import KafkaException

    from mirrorlake.spark.causes import as_mirrorlake_error

    try:
        yield
    except KafkaException as error:
        raise as_mirrorlake_error(error, what) from error


def _answer_callback(
    answered: Callable[[Resent], None] | None,
    answer: "Callable[[PlannedResend, SendOutcome], Resent]",
) -> "OnSent":
    """Wrap `answered` so that it gets the answer."""

    def on_sent(planned: "PlannedResend", outcome: "SendOutcome") -> None:
        if answered is not None:
            answered(answer(planned, outcome))

    return on_sent


def check_columns(where: str) -> None:
    """Raise InputError for a misspelt column in a predicate: Spark says so too, once it has
    started."""
    from mirrorlake.lake.definitions import definition
    from mirrorlake.lake.same_meaning import misspelt_column

    found = misspelt_column(where, [column.name for column in definition("records").columns])
    if found is not None:
        raise InputError(
            f"the predicate: records has no column {found[0]}; did you mean {found[1]}?"
        )


def _check_rate(rate: int | None) -> None:
    if rate is not None and rate < 1:
        raise InputError("the rate has to be above 0 records a second")


def _check_clusters(known: Internals, source: str | None, target: str | None) -> None:
    """Raise InputError for a cluster that is not in the file, LakeError without a lake, which would
    be made, and ClusterUnusable for a target that does not answer: before Spark starts, so that the
    failure is reported within seconds."""
    for alias in (source, target):
        if alias is not None and alias not in known.topology.clusters:
            there = known.topology.clusters
            raise InputError(f"there is no cluster {alias}{nearest(alias, there)}")
    known.check_there()
    if target is not None:
        known.connections.admin(target).cluster_id()


def _check_selected(below: Mapping[tuple[str, int], int], topics: Sequence[str]) -> None:
    """Raise InputError for the end of a partition whose topic is not restored."""
    for topic, partition in below:
        if topics and not matches_any(topics, topic):
            raise InputError(
                f"{topic} is not restored, so no offset can be given for its partition "
                f"{partition}; name the topic too, or leave the offset out"
            )


def _sources_of(stage: StageFiles, aliases: Iterable[str], topic: str) -> list[str]:
    """Those of some clusters of which the lake has a topic. Raises InputError if there is none."""
    with stage.reading() as index:
        there = [alias for alias in aliases if topic in index.topics(alias)]
    if not there:
        raise InputError(f"the lake has no records of a topic {topic}")
    return there


def _target_of(known: Internals, source: str) -> str:
    """The only cluster that flows from a source lead to. Raises InputError for none or several."""
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
