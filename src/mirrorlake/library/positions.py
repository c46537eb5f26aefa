"""Translating positions and moving consumer groups: a part of an open lake."""

import time
from collections.abc import Iterable, Mapping, Sequence

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import InputError
from mirrorlake.failover.failover import MoveOptions, move_groups, planned_moves
from mirrorlake.groups.passed_over import PASSED_OVER, records_passed_over
from mirrorlake.groups.shared_topics import Direction, Route
from mirrorlake.groups.view import read_groups
from mirrorlake.lake.other_logs import inexact_reasons
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import translate, translate_all
from mirrorlake.library.flows import Opened
from mirrorlake.library.group_answers import Groups, Migrated, Moves, Position
from mirrorlake.library.store_refusals import raises_lake_errors
from mirrorlake.offsets.positions import TopicPartitionOffset, Translated
from mirrorlake.resend.note import is_resend


@raises_lake_errors
class Positions(Opened):
    """`OpenLake`'s methods about positions."""

    def translate(
        self, flow: str, topic: str, partition: int, offset: int, *, reverse: bool = False
    ) -> Position:
        """Translate a position from a flow's source to its target, or back.

        Args:
            flow: the flow.
            topic: named as on the side of the given position.
            partition, offset: the position on that side.
            reverse: from the target to the source.

        Raises:
            UnknownOffset: the flow has never seen this partition.
            InputError: a number is negative.
            LakeError: there is no lake.
        """
        self._check(flow)
        if offset < 0 or partition < 0:
            raise InputError("partition and offset count from 0; give the offset that is read next")
        reader = self.internals.reader
        with self.internals.or_absent():
            there = translate(reader, flow, topic, partition, offset, reverse=reverse)
        asked = (topic, partition, offset)
        return _answers(reader, flow, {asked: there}, reverse)[asked]

    def translate_all(
        self, flow: str, positions: Iterable[TopicPartitionOffset], *, reverse: bool = False
    ) -> dict[TopicPartitionOffset, Position]:
        """Translate many positions in one statement.

        Args:
            flow: the flow.
            positions: (topic, partition, offset) of each.
            reverse: from the target to the source.

        Returns:
            The translation of each position; positions in partitions that the flow has never seen
            are left out.

        Raises:
            LakeError: there is no lake.
        """
        self._check(flow)
        self.internals.check_there()
        reader = self.internals.reader
        return _answers(reader, flow, translate_all(reader, flow, positions, reverse), reverse)

    def groups(self, flow: str, groups: Sequence[str] | None = None) -> Groups:
        """Return where consumer groups stand on both sides of a flow, and what a failover now would
        mean. Asks the clusters.

        Args:
            flow: the flow.
            groups: only these; all that the flow mirrors for None.

        Raises:
            InputError: a group exists on neither side.
            LakeError: there is no lake.
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
            force: also move positions backwards, and positions that their owners set back.
            drain: catch up first.

        Raises:
            InputError: a group exists on neither side.
            ClusterUnusable: the target cannot be used.
            LeaseTaken: another process moves groups between these clusters.
            LakeError: there is no lake, or it was opened read-only, which allows only a dry run, or
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
        """Move groups from the target of a flow back to its source; otherwise like `failover`."""
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
            flow: the flow, which mirrors the same topics beside MirrorMaker 2 under different
                names.
            topics: a regex that source topics match as a whole: the wave.
            groups: a regex that groups match as a whole.
            copies: how MirrorMaker 2 names its copies; `{topic}` under its identity policy.
            rollback: from our copies back to those of MirrorMaker 2.
            dry_run: change nothing.
            inexact: also move positions that do not translate exactly: no record is skipped, some
                are read again.

        Raises:
            InputError: no topic or group matches the wave.
            ClusterUnusable: a cluster cannot be asked.
            LeaseTaken: another process moves groups between these clusters.
            LakeError: there is no lake.
        """
        # these import Kafka's consumers, which other answers do not need
        from mirrorlake.migrate.copies import Wave
        from mirrorlake.migrate.migration import migrate

        wave = Wave(topics, groups, copies, rollback=rollback, dry_run=dry_run, inexact=inexact)
        lake = None if dry_run else self.internals.writable
        return Migrated.from_document(migrate(lake, self._route(self._resolved(flow)), wave))

    def _move(self, flow: str, reverse: bool, groups: Sequence[str] | None, **how: bool) -> Moves:
        """Move groups, recorded as an MLflow run; a dry run is not, and starts no session."""
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
        """A flow of the file, once the lake is there: by an empty one no group has a position."""
        resolved = self.internals.topology.flow(self.flows[flow].name)
        self.internals.check_there()
        return resolved

    def _route(self, flow: ResolvedFlow, reverse: bool = False) -> Route:
        known = self.internals
        return Route(flow, reverse, lake=known.reader, connections=known.connections)

    def _check(self, flow: str) -> None:
        """Raise TopologyError for a flow that is not in the topology file. Without a file, and for
        a replay or restore, the map itself decides."""
        if self.internals.has_topology and not is_resend(flow):
            self.flows[flow]


def _answers(
    reader: Reader, flow: str, translated: Mapping[TopicPartitionOffset, Translated], reverse: bool
) -> dict[TopicPartitionOffset, Position]:
    """The translated positions, each with the reason if it is not exact."""
    passed_over = () if reverse else records_passed_over(reader, flow, translated)
    reasons = {
        **dict.fromkeys(passed_over, PASSED_OVER),
        **(inexact_reasons(reader, flow, translated, reverse) if translated else {}),
    }
    return {
        key: Position(
            there.topic, there.partition, there.offset, key not in reasons, reasons.get(key)
        )
        for key, there in translated.items()
    }
