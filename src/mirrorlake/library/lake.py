"""An open lake: what the library, the command line and the notebooks ask, and what they do."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from threading import Event

from mirrorlake.config.maintenance import Maintenance
from mirrorlake.library.answers import Plan, Produced, Rows, Status
from mirrorlake.library.lake_answers import Forgotten, Registered, Upkeep
from mirrorlake.library.planning import planned
from mirrorlake.library.positions import Positions
from mirrorlake.library.queries import Queries
from mirrorlake.library.resends import Resends
from mirrorlake.library.store_refusals import store_in_words
from mirrorlake.library.verify_answer import Verified
from mirrorlake.run.resolve import Wanted, open_incidents, resolve
from mirrorlake.run.status import read_status


@store_in_words
class OpenLake(Queries, Positions, Resends):
    """A lake, opened by `mirrorlake.open`: its flows, its tables, and what can be done with them.

        lake = mirrorlake.open("mirrorlake.yml")
        lake.run(once=True), lake.status().healthy, lake.rows("SELECT * FROM replication_lag")

    Offsets are positions as Kafka commits them: the next offset to be read. A flow is named
    `source->target`; one that is unknown raises TopologyError, a KeyError too. What needs the
    clusters, or writes, needs a lake that was opened by its topology file, and raises InputError
    otherwise. `internals` is for parts of mirrorlake itself.
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
        """Delete the staged records of topics that a predicate picks, as far as no flow needs them
        any more (docs/forget.md). Source and target keep theirs.

        Args:
            topic: one or more, named as at the source.
            where: the predicate, in Spark's SQL, over the columns of `records`.
            source: the alias of the source cluster; needed where topics of several have the name.
            dry_run: only count.

        Raises:
            InputError: the predicate cannot be run, or a topic is not staged.
            LakeError: there is no lake.
            LeaseTaken: another process does the same.
        """
        from mirrorlake.forget.forget import forget  # which needs Spark

        self.internals.check_there()
        self.internals.by_files = False  # by Spark the predicate is about a table of Delta
        topics = [topic] if isinstance(topic, str) else list(topic)
        deployment = self.internals.deployment
        kept = deployment.connections.topology.maintain.vacuum_hours
        return Forgotten.from_document(
            forget(deployment, topics, where, source=source, dry_run=dry_run, vacuum_hours=kept)
        )

    def status(self) -> Status:
        """How the replication is: flows, lag, open incidents and alerts.

        Without a topology file it is read from the tables alone: neither clusters are asked nor
        laws checked. Where there is no lake yet, or no flow has ever begun in it, it is not
        healthy, and `attention` says so.
        """
        known = self.internals
        connections = known.connections if known.has_topology else None
        by_kafka = known.has_topology and known.topology.availability == "kafka"
        lake_id = known.stored_id if by_kafka else None
        reader = known.reader
        document = read_status(reader, connections, lake_id)
        absence = None if reader.held("records") is not None else known.absence
        if absence is not None:  # nothing was looked at that could be healthy
            document |= {"healthy": False, "attention": [str(absence)]}
        return Status.from_document(document)

    def plan(self, flows: Sequence[str] | None = None) -> Plan:
        """Everything that `run` would do to the targets, without doing it. Asks the clusters; needs
        no session.

        Args:
            flows: only these; all that are enabled for None.

        Raises:
            TopologyError: a flow is unknown or disabled, or no flow of the file is enabled.
            ClusterUnusable: a cluster does not answer, or refuses us.
        """
        return planned(self.internals, flows)

    def doctor(self) -> Rows:
        """All that the topology file needs of this machine, its clusters and its lake, looked at
        one by one: check, subject, state (good, note, bad), sentence, fix. Changes nothing.

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
        """Replicate: land, produce, and keep topics, groups and ACLs alike. Blocks; recorded as a
        run of MLflow.

        A process that is there to run flows begins with this: the local session that an answer
        makes is one for answers.

        Args:
            flows: only these; all that are enabled for None.
            once: end at the end offsets seen at the start; else it ends by `stop`, and follows
                edits of the file.
            report: called after each batch, in the flow's thread, with what was produced so far.
            stop: set it to end; batches in hand are finished. For None an interrupt (Ctrl-C, a
                notebook's stop) does.
            reader: how tasks read the stage: auto, files or rows.
            register: call `register` before the first record.
            metrics: HOST:PORT to serve Prometheus at; that of the file for None.
            standby: only stand by: work where another process of the file has worked
                (`availability: kafka`).

        Returns:
            flow, records, batches and short_batches of each flow.

        Raises:
            TopologyError: flows must not run; nothing was done.
            ClusterUnusable, LakeError, LeaseTaken: a cluster or the lake cannot be used, or another
                process runs it.
            ReplicationError: what an operator has to decide about, after all else has ended; or it
                was stopped before the end that `once` names.
        """
        from mirrorlake.library.replicating import replicated

        return replicated(
            self.internals,
            flows,
            once=once,
            report=report,
            stop=stop,
            reader=reader,
            register=register,
            metrics=metrics,
            standby=standby,
        )

    def register(self) -> Registered:
        """Give the tables of a lake at a path or URL, and the views over them, their names in the
        catalog and schema of the topology file; views of another version are altered. What is
        there stays, with what was granted on it.

        Raises:
            InputError: the topology file names no catalog.
            LakeError: a name is another table's, the catalog refuses one, or is not there.
        """
        from mirrorlake.library.registering import registered

        return registered(self.internals)

    def incidents(
        self,
        flow: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        kind: str | None = None,
    ) -> Rows:
        """What waits for a decision, oldest first, each with its `choices`: a mapping of choice to
        meaning.

        Args:
            flow, topic, partition, kind: only such ones; None is any.

        Raises:
            LakeError: there is no lake.
        """
        self.internals.check_there()
        return Rows(open_incidents(self.internals.reader, Wanted(flow, topic, partition, kind)))

    def resolve(
        self,
        choice: str,
        flow: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        kind: str | None = None,
    ) -> Rows:
        """Decide all such incidents that offer a choice; a process that runs the flow takes notice.

        Args:
            choice: one of the incidents' `choices`.
            flow, topic, partition, kind: only such ones; None is any.

        Returns:
            The incidents that were decided.

        Raises:
            InputError: there is none that offers the choice.
            LakeError: there is no lake.
            ClusterUnreachable, ReplicationError: a choice that needs the clusters cannot be carried
                out.
        """
        self.internals.check_there()
        wanted = Wanted(flow, topic, partition, kind)
        return Rows(resolve(self.internals.deployment, wanted, choice))

    def maintain(
        self,
        *,
        retention_days: int | None = None,
        vacuum_hours: int | None = None,
        dry_run: bool = False,
    ) -> Upkeep:
        """Delete old records that every flow has produced, and no replay or restore that began
        waits for, and old history; compact tables; remove unused files.

        Args:
            retention_days: keep records for so many days; what the topology file says for None.
            vacuum_hours: keep files that no version needs for so many hours; what the topology file
                says for None.
            dry_run: change nothing.

        Raises:
            LakeError: there is no lake.
            LeaseTaken: another process maintains this lake.
        """
        from mirrorlake.lake.maintain import maintain
        from mirrorlake.resend.waiting import waiting_resends

        topology = self.internals.topology
        self.internals.check_there()
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
        """Compare source, stage and target by content, and note it in `audits`; it goes on where
        the last one ended.

        Args:
            flows: only these; all that are enabled for None.
            topics: only these, by their names at either side; all of them for none.
            since: only what was brought to the target since.
            offsets: only these source offsets, first and last inclusive.
            sample: only so large a part (0 to 1), the same one each time, and what differed before.
            again: what is proven already, too.
            watch: go on with what is brought meanwhile, until `stop` or an interrupt.
            max_mb_per_s: read at most so much of each cluster.
            report: called now and then with the result so far.
            stop: set it to end; ranges in hand are finished. For None an interrupt does.

        Raises:
            TopologyError: a flow is unknown or disabled, or no flow of the file is enabled.
            InputError: no flow has brought such a topic.
            ClusterUnusable: a cluster cannot be read; what was compared before is noted.
        """
        # Kafka's consumers, which other answers do without
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
