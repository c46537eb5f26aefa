"""Where readers go on: the part of an open lake that translates positions, and moves groups."""

import time
from collections.abc import Iterable, Mapping, Sequence

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import InputError
from mirrorlake.failover.failover import MoveOptions, move_groups, planned_moves
from mirrorlake.groups.shared_topics import Direction, Route
from mirrorlake.groups.view import read_groups
from mirrorlake.lake.other_logs import inexact_reasons
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import translate, translate_all
from mirrorlake.library.flows import Opened
from mirrorlake.library.group_answers import Groups, Migrated, Moves, Position
from mirrorlake.library.store_refusals import store_in_words
from mirrorlake.offsets.positions import TopicPartitionOffset, Translated
from mirrorlake.resend.note import is_resend


@store_in_words
class Positions(Opened):
    """What `OpenLake` knows and does of positions."""

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
        reader = self.internals.reader
        there = translate(reader, flow, topic, partition, offset, reverse=reverse)
        asked = (topic, partition, offset)
        return _told(reader, flow, {asked: there}, reverse)[asked]

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

        Raises:
            LakeError: there is no lake.
        """
        self._check(flow)
        self.internals.check_there()
        reader = self.internals.reader
        return _told(reader, flow, translate_all(reader, flow, positions, reverse), reverse)

    def groups(self, flow: str, groups: Sequence[str] | None = None) -> Groups:
        """Where consumer groups stand on both sides of a flow, and what a failover now would mean.
        Asks the clusters.

        Args:
            flow: the flow.
            groups: only these; all that the flow mirrors for None.

        Raises:
            InputError: a group is nowhere.
        """
        return Groups.from_document(read_groups(self._route(self._resolved(flow)), groups))

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
        from mirrorlake.migrate.migration import migrate
        from mirrorlake.migrate.wave import Wave

        wave = Wave(topics, groups, copies, rollback=rollback, dry_run=dry_run, inexact=inexact)
        lake = None if dry_run else self.internals.writable
        return Migrated.from_document(migrate(lake, self._route(self._resolved(flow)), wave))

    def _move(self, flow: str, reverse: bool, groups: Sequence[str] | None, **how: bool) -> Moves:
        """Move groups, which is recorded as a run of MLflow; what would be moved starts no session,
        and is not recorded."""
        named = None if groups is None else tuple(dict.fromkeys(groups))
        known, options = self.internals, MoveOptions(named, **how)
        direction = Direction(self._resolved(flow), reverse)
        if options.dry_run:
            route = self._route(direction.flow, reverse)
            return Moves.from_document(planned_moves(route, options))
        from mirrorlake.tracking.runs import tracked  # a plan needs neither Spark nor MLflow

        # Before Spark starts, so that a failure is reported within seconds.
        known.connections.admin(direction.goal).cluster_id()
        facts = {"flow": flow, "dry_run": "false", "force": str(options.force).lower()}
        with tracked(known.topology, "failback" if reverse else "failover", facts) as tracking:
            began = time.monotonic()
            moves = move_groups(known.deployment, direction, options)
            figures = {"positions": len(moves["groups"]), "left": len(moves["left"])}
            tracking.metrics({"seconds": time.monotonic() - began, **figures})
            tracking.report(moves)
        return Moves.from_document(moves)

    def _resolved(self, flow: str) -> ResolvedFlow:
        return self.internals.topology.flow(self.flows[flow].name)

    def _route(self, flow: ResolvedFlow, reverse: bool = False) -> Route:
        known = self.internals
        return Route(flow, reverse, lake=known.reader, connections=known.connections)

    def _check(self, flow: str) -> None:
        """Raise TopologyError for a flow that the topology file has not; without one the map itself
        decides, and it does of a replay or a restore."""
        if self.internals.has_topology and not is_resend(flow):
            self.flows[flow]


def _told(
    reader: Reader,
    flow: str,
    translated: Mapping[TopicPartitionOffset, Translated],
    reverse: bool,
) -> dict[TopicPartitionOffset, Position]:
    """Translated positions, each with why it is not exact, where it is not."""
    reasons = inexact_reasons(reader, flow, translated, reverse) if translated else {}
    return {
        key: Position(
            there.topic, there.partition, there.offset, key not in reasons, reasons.get(key)
        )
        for key, there in translated.items()
    }
