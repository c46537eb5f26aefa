"""What a source does not show is not compared, and said to be so: the stage and the target alone
prove nothing of it, and their being the same would count for good."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicIdentity
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.generations import generations_of
from mirrorlake.testing import MemoryCluster
from mirrorlake.verify import scope as scope_of_flow
from mirrorlake.verify.coverage import find_not_compared
from mirrorlake.verify.left_out import LeftOut
from mirrorlake.verify.not_compared import NO_ANSWER
from mirrorlake.verify.partition_scope import PartitionScope
from mirrorlake.verify.plan import Choice, choose
from mirrorlake.verify.scope import FlowScope
from mirrorlake.verify.target_side import TargetSide
from mirrorlake.verify.verdict import Allowances
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    run_row,
    staged,
    write_file,
)


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
    scope.rows = []
    scope.floors, scope._source_ids = {}, {}
    scope.target = TargetSide(scope.flow, scope.deployment, scope.selected)
    scope.target.ends = {("east.orders", 0): 10}
    scope._left_out = LeftOut(scope.flow, lake, {}, {})
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


class Hiding(MemoryCluster):
    """A cluster that neither lists a topic nor describes it."""

    def _identities(
        self, topics: Sequence[str]
    ) -> tuple[dict[str, TopicIdentity], frozenset[str], Mapping[str, str]]:
        identities, missing, odd = super()._identities(topics)
        return identities, missing - {"orders"}, odd


@pytest.mark.parametrize("hides", [True, False], ids=["not shown", "deleted"])
@pytest.mark.parametrize("proven", [False, True])
def test_nor_of_one_that_the_flow_does_not_select_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proven: bool, hides: bool
) -> None:
    flow = {"topics": ["payments"], "delivery": "at_least_once"}
    lake, topology = opened(no_session, write_file(tmp_path, flows={FLOW: flow}))
    append(lake, "records", staged(range(10)))
    append(lake, "offset_map", [run_row(0, 9)])
    if proven:
        names = ("flow", "topic", "partition", "generation", "target_topic", "target_generation")
        row = dict(zip(names, (FLOW, "orders", 0, 0, "east.orders", 0), strict=True))
        row |= {"first_offset": 0, "last_offset": 5, "target_last_offset": 9, "stage_count": 6}
        row |= {"verdict": "proven", "audited_at": ago(60), "excused": [], "differences": []}
        lake.append("audits", rows_of("audits", [row]))
    source = (Hiding if hides else MemoryCluster)("east")
    clusters = {"east": source, "west": MemoryCluster("west", {"east.orders": [10]})}
    monkeypatch.setattr(scope_of_flow, "describe_topic_configs", lambda *_: Described())
    deployment = Deployment.opened(lake, Connections(topology, clusters))
    scope = FlowScope(topology.flow(FLOW), deployment, lambda _: True)
    with StageFiles(lake.reader).reading() as index:
        partitions = scope.partitions(index)
        held, free = find_not_compared(scope, partitions, index, Choice().bounds)
    assert [one.topic for one in partitions] == ["orders"] and free == []
    extents = [found.extents for found in choose(scope, partitions, Choice())]
    first = 6 if proven else 0
    if hides:
        assert extents == []
        assert [(one.first, one.last, one.reason) for one in held] == [(first, 9, NO_ANSWER)]
    else:  # the source has nothing of it any more, and says so
        assert extents == [[(first, 9)]] and held == []
