"""Who works and who stands by, by what clusters say of groups. No Kafka."""

from types import SimpleNamespace
from typing import Any

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.groups import GroupMembers, GroupPositions
from mirrorlake.naming.worker_groups import PARTITION, TOPIC, Process, client_id
from mirrorlake.offsets.positions import Committed
from mirrorlake.run.workers import SoleWork, read_workers, rows_of, works_of

ONE, OTHER = Process("h1", 1, "06:00"), Process("h2", 2, "06:10")
SINCE = ONE._replace(since="06:05")
FLOW = SoleWork("flow east->west", "east->west", "west", "g")


def positions(text: str) -> GroupPositions:
    return GroupPositions({"g": {(TOPIC, PARTITION): Committed(0, text)}})


def test_who_works_says_since_when_and_comes_first() -> None:
    members = GroupMembers(
        {"g": [(client_id("west", OTHER), False), (client_id("west", ONE), True)]}
    )
    rows = rows_of([FLOW], members, positions(SINCE.text()))
    assert [(row["state"], row["host"], row["pid"], row["since"]) for row in rows] == [
        ("works", "h1", 1, "06:05"),
        ("stands by", "h2", 2, "06:10"),
    ]
    assert {row["work"] for row in rows} == {"flow east->west"}


def test_what_a_process_before_committed_says_nothing_of_this_one() -> None:
    members = GroupMembers({"g": [(client_id("west", OTHER), True)]})
    (row,) = rows_of([FLOW], members, positions(SINCE.text()))
    assert (row["host"], row["since"]) == ("h2", "06:10")


def test_one_that_was_started_again_is_shown_and_not_the_one_whose_name_it_took_over() -> None:
    again = ONE._replace(pid=7, since="06:20")
    members = GroupMembers({"g": [(client_id("west", ONE), True)]})
    (row,) = rows_of([FLOW], members, positions(again.text()))
    assert (row["state"], row["pid"], row["since"]) == ("works", 7, "06:20")
    (row,) = rows_of([FLOW], members, positions(ONE._replace(pid=7, since="05:50").text()))
    assert row["pid"] == 1, "which has not said so yet"


def test_a_member_that_is_not_ours_is_there_without_a_name() -> None:
    (row,) = rows_of([FLOW], GroupMembers({"g": [("kafka-cli", False)]}), GroupPositions({}))
    assert (row["state"], row["host"], row["pid"]) == ("stands by", None, None)


def test_landing_is_a_work_of_its_own_once_a_source() -> None:
    flows: Any = [
        SimpleNamespace(name=f"east->{target}", source="east", target=target)
        for target in ("west", "south")
    ]
    assert [(work.text, work.cluster) for work in works_of("0123abcd", flows)] == [
        ("flow east->west", "west"),
        ("flow east->south", "south"),
        ("landing of cluster east", "east"),
    ]


def test_a_cluster_that_does_not_answer_is_said_to_be_unchecked() -> None:
    class Away:
        def members(self, _groups: list[str]) -> GroupMembers:
            raise ClusterUnreachable("cluster west is away", alias="west")

    connections: Any = SimpleNamespace(groups=lambda _alias: Away())
    rows, unchecked = read_workers(connections, [FLOW])
    assert rows == []
    assert unchecked == ["who works at cluster west was not asked: cluster west is away"]
    refused = GroupMembers({}, {"g": "not authorized"})
    there: Any = SimpleNamespace(
        members=lambda _groups: refused, positions=lambda _groups: GroupPositions({})
    )
    connections = SimpleNamespace(groups=lambda _alias: there)
    assert read_workers(connections, [FLOW]) == (
        [],
        ["who works at cluster west was not asked: not authorized"],
    )
