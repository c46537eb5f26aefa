"""A running `run` takes over an edited topology file within 15 seconds, and an invalid edit changes
nothing."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, read_topic, topics_of
from tests.support.topologies import Live, ends, fill, live, staged_count, values, write_flows
from tests.support.waiting import until

pytestmark = pytest.mark.slow

#: What the issue promises; and how much longer a first record may take, of a flow that has to
#: start.
IN_FORCE, AND_A_RECORD = 15.0, 30.0


def edits(run: Live, outcome: str) -> list[dict[str, Any]]:
    """What `changes` notes of edits of the topology file that ended so."""
    rows = run.lake.ask_table("changes")
    return [row for row in rows if (row["kind"], row["outcome"]) == ("topology", outcome)]


def test_edits_are_in_force_within_15_seconds(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    mark = f"l{uuid.uuid4().hex[:6]}-"
    addresses = {"east": clusters.east, "west": clusters.west}
    for name in ("first", "second", "back"):
        bootstrap = clusters.west if name == "back" else clusters.east
        create_topic(bootstrap, mark + name)
        fill(bootstrap, mark + name, "a", 10, 1)

    def edit(flow: dict[str, Any], back: dict[str, Any] | None = None) -> None:
        flows = {"east->west": flow}
        if back is not None:
            flows["west->east"] = back
        write_flows(tmp_path, addresses, flows)

    def arrived(name: str) -> int:
        there = clusters.east if name == "back" else clusters.west
        prefix = "west" if name == "back" else "east"
        return ends(there, [f"{prefix}.{mark}{name}"])

    @contextmanager
    def in_force(run: Live, outcome: str = "done") -> Iterator[None]:
        known = len(
            edits(run, outcome)
        )  # before the edit, which may be in force before this is answered
        yield
        seconds = until(lambda: len(edits(run, outcome)) > known, "the edit is noted in changes")
        assert seconds < IN_FORCE

    def values_of(name: str) -> list[str]:
        return values(read_topic(clusters.west, f"east.{mark}{name}")[0])

    first, second, both = [mark + "first"], [mark + "second"], [mark + "first", mark + "second"]
    edit({"topics": first})
    with live(spark, tmp_path / "mirrorlake.yml", watch=True) as run:
        until(lambda: arrived("first") >= 10, "the first topic")
        assert f"east.{mark}second" not in topics_of(clusters.west)

        edit({"topics": both})
        assert until(lambda: arrived("second") >= 10, "a topic more") < AND_A_RECORD

        with in_force(run):
            edit({"topics": both, "paused": second})
        fill(clusters.east, mark + "second", "b", 10, 1)
        fill(clusters.east, mark + "first", "b", 10, 1)
        until(lambda: "b:9" in values_of("first"), "the other topic goes on")
        until(lambda: staged_count(run.lake, f"{mark}second")[0] == 20, "a paused topic is landed")
        assert len(values_of("second")) == 10

        edit({"topics": both})
        assert until(lambda: "b:9" in values_of("second"), "resumed") < AND_A_RECORD

        with in_force(run):
            edit({"topics": both, "paused": True})
        fill(clusters.east, mark + "first", "c", 10, 1)

        with in_force(run, "refused"):
            (tmp_path / "mirrorlake.yml").write_text(
                "flows: {east->wset: {topics: [", encoding="utf-8"
            )
        assert len(values_of("first")) == 20, "a paused flow produces nothing"
        with in_force(run, "refused"):
            edit({"topics": both, "topic": "x"})

        edit({"topics": both}, {"topics": [mark + "back"]})
        assert until(lambda: arrived("back") >= 10, "a new flow") < AND_A_RECORD
        assert until(lambda: "c:9" in values_of("first"), "the flow goes on") < AND_A_RECORD
        assert not run.incidents()
    assert values_of("first") == [f"{tag}:{n}" for tag in "abc" for n in range(10)]
    assert values_of("second") == [f"{tag}:{n}" for tag in "ab" for n in range(10)]
    refused = edits(run, "refused")
    assert all("mirrorlake.yml" in row["error"] for row in refused) and len(refused) == 2


def test_an_edit_while_the_target_is_away_is_in_force_when_it_is_back(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    first, second = (f"w{uuid.uuid4().hex[:6]}-{name}" for name in ("first", "second"))
    for name in (first, second):
        create_topic(clusters.east, name)
        fill(clusters.east, name, "a", 10, 1)
    with EmbeddedCluster("north", tmp_path / "north") as north:
        addresses = {"east": clusters.east, "north": north.bootstrap_servers}
        path = write_flows(tmp_path, addresses, {"east->north": {"topics": [first]}})
        with live(spark, path, watch=True) as run:
            until(lambda: ends(north.bootstrap_servers, [f"east.{first}"]) >= 10, "the first topic")
            north.stop()
            write_flows(tmp_path, addresses, {"east->north": {"topics": [first, second]}})
            until(lambda: run.incidents("topology_edit"), "the edit is told to wait")
            (waiting,) = run.incidents("topology_edit")
            assert (
                waiting["flow"] == "east->north" and "north does not answer" in waiting["detail"]
            ), waiting
            assert "tried again" in waiting["detail"], waiting
            north.start()
            until(
                lambda: ends(north.bootstrap_servers, [f"east.{second}"]) >= 10,
                "the edit is in force",
                150,
            )
            until(lambda: not run.incidents("topology_edit"), "nothing waits any more")
            assert len(edits(run, "done")) == 1
