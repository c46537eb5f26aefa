"""What a source does not show is not compared, and said to be so: the stage and the target alone
prove nothing of it, and their being the same would count for good."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.generations import generations_of
from mirrorlake.testing import MemoryCluster
from mirrorlake.verify.coverage import find_not_compared
from mirrorlake.verify.not_compared import NO_ANSWER
from mirrorlake.verify.partition_scope import PartitionScope
from mirrorlake.verify.plan import Choice, choose
from mirrorlake.verify.scope import FlowScope
from mirrorlake.verify.verdict import Allowances
from tests.support.lake_rows import FLOW, no_session, opened, write_file


@pytest.mark.parametrize("listed", [False, True], ids=["unseen", "listed, and not described"])
@pytest.mark.parametrize("generation", [0, -1], ids=["living", "over"])
def test_nothing_is_proven_of_a_topic_that_is_not_shown(
    tmp_path: Path, generation: int, listed: bool
) -> None:
    lake, topology = opened(no_session, write_file(tmp_path))
    cluster = MemoryCluster("east", {"orders": [10]} if listed else {})
    connections = Connections(topology, {"east": cluster})
    scope: Any = FlowScope.__new__(FlowScope)
    scope.flow, scope.deployment = topology.flow(FLOW), Deployment.opened(lake, connections)
    scope._generations = generations_of(lake, "east")
    scope.hidden = scope.selected = frozenset({"orders"})
    scope.source_partitions = {("orders", 0)} if listed else set()
    scope.source_bounds = {("orders", 0): (0, 10)} if listed else {}
    scope.floors, scope._forgotten, scope._removals = {}, {}, []
    scope._starts, scope._left_out, scope._source_ids = {}, {}, {}
    one = PartitionScope(
        *("orders", 0, generation, "east.orders", 0, 2, 10, 0, 10),
        allowed=Allowances(),
        asks_source=False,
    )
    chosen = choose(scope, [one], Choice())
    if generation < 0:  # of which a source has nothing anyway
        assert [found.extents for found in chosen] == [[(2, 9)]]
        return
    assert chosen == []
    scope.source_partitions = {("orders", 0)}  # of which the stage has something, or the source
    with StageFiles(lake.reader).reading() as index:
        held, free = find_not_compared(scope, [one], index, Choice().bounds)
    assert [(found.first, found.last, found.reason) for found in held] == [(2, None, NO_ANSWER)]
    assert free == []
