"""An open lake: what the library, the command line and the notebooks query and do."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from threading import Event

from mirrorlake.config.lake import Maintenance
from mirrorlake.errors import InputError
from mirrorlake.lake.changes import WHOLE_LAKE
from mirrorlake.library.answers import Plan, Produced, Resolved, Rows, Status
from mirrorlake.library.lake_answers import Forgotten, Registered, Upkeep
from mirrorlake.library.planning import planned
from mirrorlake.library.positions import Positions
from mirrorlake.library.queries import Queries
from mirrorlake.library.resends import Resends, check_columns
from mirrorlake.library.store_refusals import raises_lake_errors
from mirrorlake.library.verify_answer import Verified
from mirrorlake.run.options import RunOptions
from mirrorlake.run.resolve import Wanted, open_incidents, resolve
from mirrorlake.run.status import read_status


@raises_lake_errors
class OpenLake(Queries, Positions, Resends):
    """A lake opened by `mirrorlake.open`: its flows, its tables, and the operations on them.

        lake = mirrorlake.open("mirrorlake.yml")
        lake.run(once=True), lake.status().healthy, lake.rows("SELECT * FROM replication_lag")

    Offsets are positions as Kafka commits them: the next offset to read. A flow is named
    `source->target`; an unknown one raises TopologyError, which here is a KeyError too. Methods
    that need the clusters, or write, raise InputError unless the lake was opened by its topology
    file. `internals` is for mirrorlake's own modules.
    """

    def __repr__(self) -> str:
        known = self.internals
        return f"OpenLake({str(known.config) if known.config else known.place!r})"

    def forget(
        self,
        topic: str | Iterable[str],
        where: str,
        *,
        source: str | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Delete staged records of topics that match a predicate and that no flow needs any more
        (docs/forget.md). Source and target keep theirs.

        Args:
            topic: one or more topics, named as at the source.
            where: the predicate, in Spark's SQL, over the columns of `records`.
            source: the alias of the source cluster; required if several clusters have such a topic.
            dry_run: count only.

        Raises:
            InputError: the predicate cannot be run, or a topic is not staged.
            LakeError: there is no lake.
            LeaseTaken: another process does the same.
        """
        from mirrorlake.forget.forget import forget  # which needs Spark

        check_columns(where)
        self.internals.by_files = False  # Spark then evaluates the predicate on a Delta table
        topics = [topic] if isinstance(topic, str) else list(topic)
        deployment = self.internals.deployment
        kept = deployment.connections.topology.maintain.vacuum_hours
        return Forgotten.from_document(
            forget(deployment, topics, where, source=source, dry_run=dry_run, vacuum_hours=kept)
        )

    def status(self) -> Status:
        """Return the state of the replication: flows, lag, open incidents and alerts.

        Without a topology file it is read from the tables alone: no cluster is asked, and no law
        checked. If there is no lake yet, or no flow has ever begun in it, the status is not
        healthy, and `attention` says so.
        """
        known = self.internals
        connections = known.connections if known.has_topology else None
        by_kafka = known.has_topology and known.topology.availability == "kafka"
        lake_id = known.stored_id if by_kafka else None
        reader = known.reader
        document = read_status(reader, connections, lake_id)
        absence = None if reader.held("records") is not None else known.absence
        if absence is not None:  # an absent lake must not count as healthy
            document |= {"healthy": False, "attention": [str(absence)]}
        return Status.from_document(document)

    def plan(self, flows: Sequence[str] | None = None) -> Plan:
        """Return everything that `run` would do to the targets, without doing it. Asks the
        clusters; needs no session.

        Args:
            flows: only these; all that are enabled for None.

        Raises:
            TopologyError: a flow is unknown or disabled, or no flow of the file is enabled.
            ClusterUnusable: a cluster does not answer, or refuses us.
        """
        return planned(self.internals, flows)

    def doctor(self) -> Rows:
        """Check one by one what the topology file needs of this machine, its clusters and its lake.
        Changes nothing. Returns rows of check, subject, state (good, note, bad), sentence and fix.

        Raises:
            InputError: the lake was opened by its place, without a topology file.
        """
        from mirrorlake.library.doctor import examined

        return Rows(vars(check) for check in examined(self.internals))

    def run(
        self,
        flows: Sequence[str] | None = None,
        *,
        once: bool = False,
        report: Callable[[Produced], None] | None = None,
        stop: Event | None = None,
        reader: str = "auto",
        register: bool = False,
        metrics: str | None = None,
        standby: bool = False,
    ) -> Rows:
        """Replicate: land, produce, and keep topics, groups and ACLs in sync. Blocks; is recorded
        as an MLflow run.

        Call this first in a process that runs flows: a local session made by an earlier query is
        configured for queries.

        Args:
            flows: only these; all that are enabled for None.
            once: end at the end offsets seen at the start. Otherwise it runs until `stop` and takes
                over edits of the file.
            report: called after each batch, in the flow's thread, with the totals so far.
            stop: set it to end after the current batches. If None, an interrupt (Ctrl-C, a
                notebook's stop) ends the run.
            reader: how tasks read the stage: auto, files or rows.
            register: call `register` before the first record.
            metrics: HOST:PORT to serve Prometheus metrics at; None for the file's.
            standby: only stand by, and take over the work of another process of the file
                (`availability: kafka`).

        Returns:
            flow, records, batches and short_batches of each flow.

        Raises:
            TopologyError: the flows must not run; nothing was done.
            ClusterUnusable, LakeError, LeaseTaken: a cluster or the lake cannot be used, or another
                process runs the flows.
            ReplicationError: an operator has to decide, and all other work has ended; or a run with
                `once` was stopped before its end.
        """
        from mirrorlake.library.replicating import replicated

        chosen = None if flows is None else tuple(flows)
        config = None if once else self.internals.config
        options = RunOptions(once, reader, config, chosen, standby=standby)
        return replicated(
            self.internals, options, report=report, stop=stop, register=register, metrics=metrics
        )

    def register(self) -> Registered:
        """Register the tables of a lake at a path or URL, and the views over them, in the catalog
        and schema of the topology file. Views of another version are altered; existing tables and
        views stay, with their grants.

        Raises:
            InputError: the topology file names no catalog.
            LakeError: there is no lake at the path, another table has one of the names, or the
                catalog refuses one or does not exist.
        """
        from mirrorlake.library.registering import registered

        return registered(self.internals)

    def incidents(
        self,
        flow: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        kind: str | None = None,
        *,
        target_topic: str | None = None,
    ) -> Rows:
        """Return the open incidents, oldest first, each with its `choices`: a mapping of choice to
        meaning.

        Args:
            flow, topic, partition, kind, target_topic: only such ones; None is any.

        Raises:
            LakeError: there is no lake.
            TopologyError: the file has no such flow, and none of its incidents is open.
        """
        self.internals.check_there()
        wanted = Wanted(flow, topic, partition, kind, target_topic)
        rows = Rows(open_incidents(self.internals.reader, wanted))
        if not rows:
            self._refuse_misspelt(flow)
        return rows

    def resolve(
        self,
        choice: str,
        flow: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        kind: str | None = None,
        *,
        target_topic: str | None = None,
    ) -> Resolved:
        """Decide all matching incidents that offer the choice; a process that runs the flow picks
        it up. Where those of a topic are about several target topics, as after a change of the
        policy, only those about the one of now are decided.

        Args:
            choice: one of the `choices` of the incidents.
            flow, topic, partition, kind, target_topic: only such ones; None is any.

        Returns:
            The incidents that were decided, with those of other target topics as `left_open`.

        Raises:
            InputError: no matching incident offers the choice, or none is about the target topic of
                now.
            LakeError: there is no lake.
            ClusterUnreachable, ReplicationError: the choice needs the clusters and cannot be
                carried out.
        """
        wanted = Wanted(flow, topic, partition, kind, target_topic)
        try:
            return Resolved(*resolve(self.internals.deployment, wanted, choice))
        except InputError:
            self._refuse_misspelt(flow)
            raise

    def _refuse_misspelt(self, flow: str | None) -> None:
        """Raise TopologyError for a flow that the file lacks, of which nothing is open: one that
        was taken out of the file may have open incidents."""
        if flow is not None and flow != WHOLE_LAKE:
            self._check(flow)

    def maintain(
        self,
        *,
        retention_days: int | None = None,
        vacuum_hours: int | None = None,
        dry_run: bool = False,
    ) -> Upkeep:
        """Delete old history, and old records that every flow has produced and no unfinished replay
        or restore needs; compact tables; remove unused files.

        Args:
            retention_days: days to keep records for; None for the topology file's setting.
            vacuum_hours: hours to keep files that no version needs; None for the topology file's
                setting.
            dry_run: change nothing.

        Raises:
            LakeError: there is no lake.
            LeaseTaken: another process maintains this lake.
        """
        from mirrorlake.lake.maintain import maintain
        from mirrorlake.resend.waiting import waiting_resends

        topology = self.internals.topology
        asked = {"retention_days": retention_days, "vacuum_hours": vacuum_hours}
        given = {name: value for name, value in asked.items() if value is not None}
        kept = Maintenance(**{**topology.maintain.model_dump(), **given})
        return Upkeep.from_document(
            maintain(self.internals.tables, topology, kept, dry_run, others=waiting_resends)
        )

    def verify(
        self,
        flows: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        *,
        since: datetime | None = None,
        offsets: tuple[int, int] | None = None,
        sample: float | None = None,
        again: bool = False,
        watch: bool = False,
        max_mb_per_s: float | None = None,
        report: Callable[[Verified], None] | None = None,
        stop: Event | None = None,
    ) -> Verified:
        """Compare source, stage and target by content, record the result in `audits`, and continue
        where the last comparison ended.

        Args:
            flows: only these; all that are enabled for None.
            topics: only these, named as at the source or at the target; all if empty.
            since: only records produced to the target since this time.
            offsets: only these source offsets, first and last inclusive.
            sample: only this fraction (0 to 1), the same one each time, and ranges that differed
                before.
            again: include what is proven already.
            watch: go on with newly produced records until `stop` or an interrupt.
            max_mb_per_s: read at most so many MB/s from each cluster.
            report: called from time to time with the result so far.
            stop: set it to end after the current ranges. If None, an interrupt ends it.

        Raises:
            TopologyError: a flow is unknown or disabled, or no flow of the file is enabled.
            InputError: no flow has produced such a topic.
            ClusterUnusable: a cluster cannot be read; earlier comparisons are recorded.
        """
        # these import Kafka's consumers, which other answers do not need
        from mirrorlake.library.verifying import verified
        from mirrorlake.verify.plan import Choice

        first, last = offsets or (None, None)
        choice = Choice(first, last, since, sample, again)
        return verified(
            self.internals,
            flows,
            topics,
            choice,
            max_mb_per_s=max_mb_per_s,
            watch=watch,
            report=report,
            stop=stop,
        )
