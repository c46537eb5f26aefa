"""An open lake: what the library, the command line and the notebooks ask, and what they do."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING

from mirrorlake.config.maintenance import Maintenance
from mirrorlake.errors import InputError, first_line
from mirrorlake.extras import needs
from mirrorlake.failover.failover import MoveOptions
from mirrorlake.groups.shared_topics import Route
from mirrorlake.groups.view import read_groups
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import translate, translate_all
from mirrorlake.library.answers import Plan, Produced, Rows, Status
from mirrorlake.library.flows import Flows
from mirrorlake.library.group_answers import Groups, Migrated, Moves, Position
from mirrorlake.library.internals import Internals
from mirrorlake.library.lake_answers import Forgotten, Registered, Upkeep
from mirrorlake.library.moving import migrated, moved
from mirrorlake.library.planning import planned
from mirrorlake.library.resends import Resends
from mirrorlake.library.verify_answer import Verified
from mirrorlake.offsets.positions import TopicPartitionOffset, Translated
from mirrorlake.resend.note import is_resend
from mirrorlake.run.resolve import Wanted, open_incidents, resolve
from mirrorlake.run.status import read_status

if TYPE_CHECKING:  # an answer needs no Spark, and what needs it imports it
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class OpenLake(Resends):
    """A lake, opened by `mirrorlake.open`: its flows, its tables, and what can be done with them.

        lake = mirrorlake.open("mirrorlake.yml")
        lake.run(once=True), lake.status().healthy, lake.rows("SELECT * FROM replication_lag")

    Offsets are positions as Kafka commits them: the next offset to be read. A flow is named
    `source->target`; one that is unknown raises TopologyError, a KeyError too. What needs the
    clusters, or writes, needs a lake that was opened by its topology file, and raises InputError
    otherwise. `internals` is for parts of mirrorlake itself.
    """

    def __init__(self, internals: Internals) -> None:
        self.internals = internals

    def __repr__(self) -> str:
        known = self.internals
        return f"OpenLake({str(known.config) if known.config else known.place!r})"

    @property
    def spark(self) -> "SparkSession":
        """The session that the lake is read with, made when it is first asked for. Raises
        MissingJava."""
        return self.internals.spark

    @cached_property
    def flows(self) -> Flows:
        """The flows by name: those of the topology file, or without one those that the lake
        knows."""
        return Flows(self.internals)

    def table(self, name: str) -> "DataFrame":
        """A table or view, such as `records` or `flow_status`, as of now (DESIGN.md lists them)."""
        return self.internals.tables.table(name)

    def sql(self, query: str, /, **parameters: object) -> "DataFrame":
        """Run a statement in which bare table names mean this lake's.

        Args:
            query: the statement; `:name` in it is a parameter.
            parameters: values of parameters, by name.

        Raises:
            InputError: the statement cannot be run.
        """
        with needs("spark"):
            from pyspark.errors import AnalysisException, ParseException

        try:
            frame = self.internals.tables.sql(query, parameters)
            frame.columns  # noqa: B018 - with Spark Connect a statement is looked into when this is asked
        except (AnalysisException, ParseException) as error:
            raise InputError(f"the query cannot be run: {first_line(error)}") from error
        return frame

    def rows(self, query: str, /, *, limit: int | None = None, **parameters: object) -> Rows:
        """Run a query in which bare table names mean this lake's; of a folder without Spark. Times
        are in UTC.

        Args:
            query: the query, in Spark's SQL; `:name` in it is a parameter.
            limit: at most so many rows, and `truncated` says whether there are more; all of them
                for None.
            parameters: values of parameters, by name.

        Raises:
            InputError: the query cannot be run.
        """
        reader = self.internals.reader
        try:
            rows = Rows(reader.rows(query, parameters, limit=None if limit is None else limit + 1))
        except InputError as error:
            raise _refused(reader, error) from error
        if limit is not None:
            rows.truncated = len(rows) > limit
            del rows[limit:]
        return rows

    def arrow(self, query: str, /, **parameters: object) -> "pa.Table":
        """The same as `rows`, as a table of Arrow: columns have their types without a row too, and
        times their zone.

        Args:
            query: the query, in Spark's SQL; `:name` in it is a parameter.
            parameters: values of parameters, by name.

        Raises:
            InputError: the query cannot be run.
        """
        reader = self.internals.reader
        try:
            return reader.arrow(query, parameters).read_all()
        except InputError as error:
            raise _refused(reader, error) from error

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
            LeaseTaken: another process does the same.
        """
        from mirrorlake.forget.forget import forget  # which needs Spark

        topics = [topic] if isinstance(topic, str) else list(topic)
        deployment = self.internals.deployment
        kept = deployment.connections.topology.maintain.vacuum_hours
        return Forgotten.from_document(
            forget(deployment, topics, where, source=source, dry_run=dry_run, vacuum_hours=kept)
        )

    def translate(
        self, flow: str, topic: str, partition: int, offset: int, *, reverse: bool = False
    ) -> Position:
        """Translate a position from the source to the target of a flow, or back.

        Args:
            flow: the flow.
            topic: named as on the side that the position is from.
            partition, offset: the position there.
            reverse: from the target to the source.

        Raises:
            UnknownOffset: the flow has never seen this partition.
            InputError: a negative number.
        """
        self._check(flow)
        if offset < 0 or partition < 0:
            raise InputError("partition and offset count from 0; give the offset that is read next")
        there = translate(self.internals.reader, flow, topic, partition, offset, reverse=reverse)
        return _position(there)

    def translate_all(
        self, flow: str, positions: Iterable[TopicPartitionOffset], *, reverse: bool = False
    ) -> dict[TopicPartitionOffset, Position]:
        """Translate many positions in one statement.

        Args:
            flow: the flow.
            positions: (topic, partition, offset) of each.
            reverse: from the target to the source.

        Returns:
            Each position's translation; one that the flow has never seen is left out.
        """
        self._check(flow)
        translated = translate_all(self.internals.reader, flow, positions, reverse)
        return {key: _position(there) for key, there in translated.items()}

    def status(self) -> Status:
        """How the replication is: flows, lag, open incidents and alerts.

        Without a topology file it is read from the tables alone: neither clusters are asked nor
        laws checked.
        """
        known = self.internals
        connections = known.connections if known.has_topology else None
        return Status.from_document(read_status(known.reader, connections))

    def groups(self, flow: str, groups: Sequence[str] | None = None) -> Groups:
        """Where consumer groups stand on both sides of a flow, and what a failover now would mean.
        Asks the clusters.

        Args:
            flow: the flow.
            groups: only these; all that the flow mirrors for None.

        Raises:
            InputError: a group is nowhere.
        """
        known = self.internals
        resolved = known.topology.flow(self.flows[flow].name)
        route = Route(resolved, lake=known.reader, connections=known.connections)
        return Groups.from_document(read_groups(route, groups))

    def plan(self, flows: Sequence[str] | None = None) -> Plan:
        """Everything that `run` would do to the targets, without doing it. Asks the clusters; needs
        no session.

        Args:
            flows: only these; all that are enabled for None.

        Raises:
            TopologyError: a flow is unknown or disabled.
            ClusterUnusable: a cluster does not answer, or refuses us.
        """
        return planned(self.internals, flows)

    def run(
        self,
        flows: Sequence[str] | None = None,
        *,
        once: bool = False,
        report: Callable[[Produced], None] | None = None,
        stop: Event | None = None,
        reader: str = "auto",
        register: bool = False,
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

        Returns:
            flow, records, batches and short_batches of each flow.

        Raises:
            TopologyError: flows must not run; nothing was done.
            ClusterUnusable, LakeError, LeaseTaken: a cluster or the lake cannot be used, or another
                process runs it.
            ReplicationError: what an operator has to decide about, after all else has ended.
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
        """
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
            ClusterUnreachable, ReplicationError: a choice that needs the clusters cannot be carried
                out.
        """
        wanted = Wanted(flow, topic, partition, kind)
        return Rows(resolve(self.internals.deployment, wanted, choice))

    def failover(
        self,
        flow: str,
        groups: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        force: bool = False,
        drain: bool = True,
    ) -> Moves:
        """Move consumer groups to the target of a flow: catch up, translate, set, read back.
        Recorded with MLflow.

        Args:
            flow: the flow.
            groups: only these; all that the flow mirrors for None.
            dry_run: change nothing.
            force: move positions backwards too, and those that their owners set back.
            drain: catch up before.

        Raises:
            InputError: a group is nowhere.
            ClusterUnusable: the target cannot be used.
            LeaseTaken: another process moves groups between these clusters.
            LakeError: the lake was opened to be read; it is then for a dry run, or for
                `drain=False`.
        """
        return self._move(flow, False, groups, dry_run=dry_run, force=force, drain=drain)

    def failback(
        self,
        flow: str,
        groups: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        force: bool = False,
        drain: bool = True,
    ) -> Moves:
        """Move consumer groups from the target of a flow back to its source; as `failover` in all
        else."""
        return self._move(flow, True, groups, dry_run=dry_run, force=force, drain=drain)

    def migrate(
        self,
        flow: str,
        topics: str,
        groups: str = ".*",
        *,
        copies: str = "{source}.{topic}",
        rollback: bool = False,
        dry_run: bool = False,
        inexact: bool = False,
    ) -> Migrated:
        """Move consumer groups on the target of a flow from MirrorMaker 2's copies of topics to
        ours (docs/migrate.md).

        Args:
            flow: the flow, which mirrors the same topics beside MirrorMaker 2 under other names.
            topics: a regex of whole names of source topics: the wave.
            groups: a regex of whole names of groups.
            copies: how MirrorMaker 2 names its copies; `{topic}` under its identity policy.
            rollback: from our copies back to those of MirrorMaker 2.
            dry_run: change nothing.
            inexact: move what is not exact too: no record is skipped, some are read again.

        Raises:
            InputError: nothing fits the wave.
            ClusterUnusable: a cluster cannot be asked.
            LeaseTaken: another process moves groups between these clusters.
        """
        # Kafka's consumers, which other answers do without
        from mirrorlake.migrate.migration import Wave

        wave = Wave(topics, groups, copies, rollback=rollback, dry_run=dry_run, inexact=inexact)
        return migrated(self.internals, self.flows[flow].name, wave)

    def maintain(
        self,
        *,
        retention_days: int | None = None,
        vacuum_hours: int | None = None,
        dry_run: bool = False,
    ) -> Upkeep:
        """Delete old records that every flow has produced, and old history; compact tables; remove
        unused files.

        Args:
            retention_days: keep records for so many days; what the topology file says for None.
            vacuum_hours: keep files that no version needs for so many hours; what the topology file
                says for None.
            dry_run: change nothing.

        Raises:
            LeaseTaken: another process maintains this lake.
        """
        from mirrorlake.lake.maintain import maintain

        topology = self.internals.topology
        asked = {"retention_days": retention_days, "vacuum_hours": vacuum_hours}
        given = {name: value for name, value in asked.items() if value is not None}
        kept = Maintenance(**{**topology.maintain.model_dump(), **given})
        return Upkeep.from_document(maintain(self.internals.tables, topology, kept, dry_run))

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
            sample: only so large a part (0 to 1), the same one each time.
            again: what is proven already, too.
            watch: go on with what is brought meanwhile, until `stop` or an interrupt.
            max_mb_per_s: read at most so much of each cluster.
            report: called now and then with what was found so far.
            stop: set it to end; ranges in hand are finished. For None an interrupt does.

        Raises:
            TopologyError: a flow is unknown or disabled.
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

    def _move(self, flow: str, reverse: bool, groups: Sequence[str] | None, **how: bool) -> Moves:
        named = None if groups is None else tuple(dict.fromkeys(groups))
        return moved(self.internals, self.flows[flow].name, reverse, MoveOptions(named, **how))

    def _check(self, flow: str) -> None:
        """Raise TopologyError for a flow that the topology file has not; without one the map itself
        decides, and it does of a replay or a restore."""
        if self.internals.has_topology and not is_resend(flow):
            self.flows[flow]


def _position(there: Translated) -> Position:
    return Position(there.topic, there.partition, there.offset, there.exact)


def _refused(reader: Reader, error: InputError) -> InputError:
    """What is said of a query that the lake's engine does not run."""
    by = "" if isinstance(reader, Lake) else f" by {reader.engine} (--engine spark asks Spark)"
    return InputError(f"the query cannot be run{by}: {error}")
