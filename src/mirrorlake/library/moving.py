"""Groups moved, and recorded as a run of MLflow; what would be moved starts no session and is not
recorded."""

import time
from typing import TYPE_CHECKING

from mirrorlake.failover.failover import MoveOptions, move_groups, planned_moves
from mirrorlake.groups.shared_topics import Direction, Route
from mirrorlake.library.group_answers import Migrated, Moves
from mirrorlake.library.internals import Internals

if TYPE_CHECKING:  # it compares records, by what other answers do without
    from mirrorlake.migrate.wave import Wave


def moved(
    known: Internals,
    flow: str,
    reverse: bool,
    options: MoveOptions,
) -> Moves:
    """Move groups of a flow to its target, or with `reverse` to its source. Raises as
    `OpenLake.failover` says."""
    resolved = known.topology.flow(flow)
    if options.dry_run:
        route = Route(resolved, reverse, lake=known.reader, connections=known.connections)
        return Moves.from_document(planned_moves(route, options))
    from mirrorlake.tracking.runs import tracked  # a plan needs neither Spark nor MLflow

    direction = Direction(resolved, reverse)
    # Before Spark starts, so that a failure is reported within seconds.
    known.connections.admin(direction.goal).cluster_id()
    facts = {"flow": flow, "dry_run": "false", "force": str(options.force).lower()}
    with tracked(known.topology, "failback" if reverse else "failover", facts) as tracking:
        began = time.monotonic()
        moves = move_groups(known.deployment, direction, options)
        seconds = {"seconds": time.monotonic() - began}
        tracking.metrics({**seconds, "positions": len(moves["groups"]), "left": len(moves["left"])})
        tracking.report(moves)
    return Moves.from_document(moves)


def migrated(known: Internals, flow: str, wave: "Wave") -> Migrated:
    """Move a wave of groups between MirrorMaker 2's copies and ours. Raises as `OpenLake.migrate`
    says."""
    from mirrorlake.migrate.migration import migrate

    lake = None if wave.dry_run else known.writable
    resolved = known.topology.flow(flow)
    route = Route(resolved, lake=known.reader, connections=known.connections)
    return Migrated.from_document(migrate(lake, route, wave))
