"""A position that groups are moved to is one that a consumer can read from, and what has none is
named.

Retention takes records of a mirror as of any topic; a topic may be empty, refused or paused; a
group may stand behind the end of its topic. No consumer may come to the broker's reset by a
position that we set: by default it skips everything.
"""

from pathlib import Path

import pytest

from tests.support.clusters import ClusterPair
from tests.support.groups import commit_nameless, delete_groups
from tests.support.kafka import create_topic, numbered, truncate, write
from tests.support.replication import FLOW, write_topology
from tests.support.scene import Scene

RECORDS = 1_000
GROUPS = {"emit_checkpoints_enabled": True, "sync_group_offsets_interval_seconds": 1}


@pytest.fixture
def scene(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Scene:
    settings = {"topics": [f"{topic_name}.*"], "groups": [f"{topic_name}.*"], **GROUPS}
    create_topic(clusters.east, topic_name)
    return Scene(
        clusters, write_topology(tmp_path, clusters.east, clusters.west, settings), topic_name
    )


def test_a_group_in_front_of_the_mirrors_start_goes_to_it_and_what_is_lost_is_said(
    scene: Scene,
) -> None:
    group = f"{scene.name}-g"
    write(scene.clusters.east, scene.name, numbered(RECORDS))
    scene.run()
    truncate(scene.clusters.west, f"east.{scene.name}", 500)
    scene.commit("east", group, 100)
    code, found = scene.failover("--all-groups", "--no-drain")
    (row,) = found["groups"]
    assert (code, found["complete"], row["to_position"], row["done"]) == (1, False, 500, "moved")
    assert (row["gone_at_most"], row["read_again_at_most"]) == (400, 0)
    assert scene.position("west", group) == 500
    (left,) = found["left"]
    assert (
        f"group {group}, east.{scene.name}-0" in left
        and "400 records" in left
        and "are not there" in left
    )


@pytest.mark.wide("test_a_group_in_front_of_the_mirrors_start_goes_to_it_and_what_is_lost_is_said")
def test_what_the_flow_goes_on_without_is_no_exact_move(scene: Scene) -> None:
    """It began behind records that the group has not read: none of them ever comes."""
    group, behind = f"{scene.name}-g", f"{scene.name}-b"
    write(scene.clusters.east, scene.name, numbered(100))
    truncate(scene.clusters.east, scene.name, 10)
    scene.edit(start="latest")
    scene.run()
    write(scene.clusters.east, scene.name, numbered(20))
    scene.run()
    for name, offset in ((group, 5), (behind, 105)):
        scene.commit("east", name, offset)
    code, found = scene.failover()
    rows = {row["group"]: row for row in found["groups"]}
    assert [rows[name]["to_position"] for name in (group, behind)] == [0, 5]
    assert [rows[name]["exact"] for name in (group, behind)] == [False, True]
    assert (rows[group]["gone_at_most"], rows[behind]["gone_at_most"]) == (90, 0)
    (left,) = found["left"]
    assert code == 1 and group in left and "up to 90 records that it has not read" in left
    place = "translate", "--flow", FLOW, "--topic", scene.name, "--partition", "0", "--offset"
    in_front, exact = (scene.call(*place, offset)[1] for offset in ("5", "105"))
    assert (in_front["offset"], exact["offset"]) == (0, 5)
    assert (in_front["exact"], exact["exact"]) == (False, True)
    assert "in front of its start" in in_front["reason"]


@pytest.mark.wide(
    "test_a_group_in_front_of_the_mirrors_start_goes_to_it_and_what_is_lost_is_said",
    "simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups",
)
def test_group_sync_keeps_groups_out_of_the_way_of_the_brokers_reset(scene: Scene) -> None:
    group, rewound = f"{scene.name}-g", f"{scene.name}-r"
    write(scene.clusters.east, scene.name, numbered(RECORDS))
    for name, offset in ((group, 100), (rewound, 800)):
        scene.commit("east", name, offset)
    scene.run()
    scene.commit("west", rewound, 50)
    assert [scene.position("west", name) for name in (group, rewound)] == [100, 50]
    truncate(scene.clusters.west, f"east.{scene.name}", 500)
    scene.run()
    assert [scene.position("west", name) for name in (group, rewound)] == [500, 500]
    code, shown = scene.call("groups", "--flow", FLOW, "--group", group)
    (row,) = shown["flows"][0]["groups"]
    assert (row["translated_position"], row["gone_at_most"]) == (500, 400)
    assert "are not there" in row["reason"]
    code, found = scene.failover("--group", group)
    assert (code, found["groups"][0]["done"]) == (1, "there") and "400 records" in found["left"][0]


@pytest.mark.wide("test_a_group_in_front_of_the_mirrors_start_goes_to_it_and_what_is_lost_is_said")
def test_what_retention_took_at_both_sides_is_no_loss_of_the_move(scene: Scene) -> None:
    """A group that was left behind by retention at its source too."""
    write(scene.clusters.east, scene.name, numbered(RECORDS))
    scene.run()
    truncate(scene.clusters.east, scene.name, 600)
    truncate(scene.clusters.west, f"east.{scene.name}", 600)
    scene.commit("east", f"{scene.name}-g", 100)
    code, found = scene.failover()
    assert (code, found["left"], found["groups"][0]["to_position"]) == (0, [], 600)


@pytest.mark.wide(
    "test_a_group_in_front_of_the_mirrors_start_goes_to_it_and_what_is_lost_is_said",
    "simulation/test_failover_schedules.py::test_no_schedule_moves_a_group_past_what_it_has_not_read",
)
def test_the_way_back_goes_to_the_start_of_the_source(scene: Scene) -> None:
    group = f"{scene.name}-g"
    write(scene.clusters.east, scene.name, numbered(RECORDS))
    scene.run()
    scene.commit("west", group, 100)
    truncate(scene.clusters.east, scene.name, 500)
    code, found = scene.failover("--group", group, word="failback")
    (row,) = found["groups"]
    assert (code, row["to_position"], row["gone_at_most"]) == (1, 500, 400)
    assert scene.position("east", group) == 500 and "are not there" in found["left"][0]


@pytest.mark.wide("test_an_empty_topic_has_a_position_too")
def test_a_topic_that_has_wholly_expired_has_a_position_at_the_mirrors_end(scene: Scene) -> None:
    """KAFKA-12635."""
    group = f"{scene.name}-g"
    write(scene.clusters.east, scene.name, numbered(100))
    truncate(scene.clusters.east, scene.name, 100)
    scene.run()
    scene.commit("east", group, 100)
    code, found = scene.failover()
    assert (code, found["left"]) == (0, [])
    assert scene.position("west", group) == 0
    write(scene.clusters.east, scene.name, numbered(5))
    scene.run()
    assert scene.position("west", group) == 0, "it reads the five that came since"


def test_an_empty_topic_has_a_position_too(scene: Scene) -> None:
    group = f"{scene.name}-g"
    scene.run()
    scene.commit("east", group, 0)
    code, found = scene.failover()
    assert (code, found["left"]) == (0, [])
    assert scene.position("west", group) == 0


@pytest.mark.wide("test_an_empty_topic_has_a_position_too")
def test_a_position_behind_the_end_of_its_topic_is_called_that(scene: Scene) -> None:
    group = f"{scene.name}-g"
    write(scene.clusters.east, scene.name, numbered(100))
    scene.run()
    scene.commit("east", group, 500)
    code, found = scene.failover()
    (row,) = found["groups"]
    assert (code, row["to_position"], row["read_again_at_most"]) == (1, 100, 0)
    (left,) = found["left"]
    assert (
        "500" in left and f"behind the end of {scene.name}-0" in left and "read again" not in left
    )
    code, shown = scene.call("groups", "--flow", FLOW, "--group", group)
    assert "behind the end" in shown["flows"][0]["groups"][0]["reason"]
    delete_groups(scene.clusters.west, [group])
    scene.run()
    assert scene.position("west", group) == 100, "the sync moves it there too"


@pytest.mark.wide("test_an_empty_topic_has_a_position_too")
@pytest.mark.parametrize(
    "away",
    [pytest.param(False, id="planned"), pytest.param(True, id="unplanned", marks=pytest.mark.slow)],
)
def test_positions_without_a_counterpart_are_named(scene: Scene, away: bool) -> None:
    """In a topic that is refused, in one that is paused, and in one that the flow does not
    select."""
    group, left_out = f"{scene.name}-g", f"{scene.name}-x"
    refused = scene.name + "r" * (248 - len(scene.name))  # its mirror could not bear the name
    paused, other = f"{scene.name}-paused", f"other-{scene.name}"
    write(scene.clusters.east, scene.name, numbered(10))
    for topic in (refused, paused, other):
        create_topic(scene.clusters.east, topic)
        write(scene.clusters.east, topic, numbered(10))
    for topic in (scene.name, refused, paused, other):
        scene.commit("east", group, 5, topic)
    scene.commit("east", left_out, 5)
    scene.edit(paused=[paused], groups_exclude=[left_out])
    scene.run(code=1)  # a topic is refused
    if away:
        scene.lose_east()
    code, found = scene.failover()
    assert code == 1
    assert scene.position("west", group) == 5
    by_group = [line for line in found["left"] if line.startswith(f"group {group}")]
    by_refused = [line for line in by_group if refused in line]
    by_paused = [line for line in by_group if paused in line]
    assert len(by_refused) == 1 and f"group {group} has no position at west" in by_refused[0], (
        found["left"]
    )
    assert len(by_paused) == 1 and "paused" in by_paused[0], found["left"]
    assert not [line for line in found["left"] if other in line]
    assert [line for line in found["warnings"] if left_out in line and "groups_exclude" in line], (
        found["warnings"]
    )
    if not away:
        assert [line for line in found["warnings"] if other in line and group in line], found[
            "warnings"
        ]


@pytest.mark.wide(
    "simulation/test_failover_schedules.py::test_no_schedule_moves_a_group_past_what_it_has_not_read"
)
def test_a_topic_that_is_refused_since_a_restart_keeps_its_positions(scene: Scene) -> None:
    group, long = f"{scene.name}-g", scene.name + "r" * (244 - len(scene.name))
    create_topic(scene.clusters.east, long)
    write(scene.clusters.east, long, numbered(10))
    scene.commit("east", group, 5, long)
    scene.run()
    assert scene.position("west", group, f"east.{long}") == 5
    scene.edit(replication_policy_separator="-" * 16)
    scene.commit("east", group, 7, long)
    scene.run(code=1)
    query = (
        "SELECT source_position, target_position, reason FROM group_positions WHERE group_id "
        f"= '{group}'"
    )
    _, rows = scene.call("sql", query)
    assert rows == [{"source_position": 7, "target_position": 7, "reason": None}]


@pytest.mark.wide("test_an_empty_topic_has_a_position_too")
def test_a_group_without_a_name_is_left_out_with_a_note(scene: Scene) -> None:
    """Old clients may commit with the group id '' (OffsetCommit v2)."""
    write(scene.clusters.east, scene.name, numbered(10))
    scene.edit(groups=[".*"])
    commit_nameless(scene.clusters.east, scene.name, 5)
    scene.run()
    code, found = scene.failover()
    assert (code, found["left"]) == (0, [])
    assert [line for line in found["warnings"] if "group ''" in line and "without a name" in line]
    _, shown = scene.call("groups", "--flow", FLOW)
    assert "" in shown["flows"][0]["not_mirrored"]
