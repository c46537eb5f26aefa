"""The names by which processes of one topology file meet, and what they say of themselves there."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.naming.at_target import is_own_group, name_at_target, of_other_lakes
from mirrorlake.naming.naming import Naming
from mirrorlake.naming.worker_groups import (
    TOPIC,
    Process,
    client_id,
    group_of_flow,
    group_of_landing,
    process_of,
    process_of_client,
)

LAKE = "0123abcd"
ALIASES = st.text(st.characters(categories=("L", "N", "P"), exclude_characters=">"), min_size=1)
PROCESS = Process("host-1.example.org", 4711, "2026-11-27T06:30:00Z")


@given(ALIASES, ALIASES)
def test_no_two_groups_have_one_name(one: str, other: str) -> None:
    """Neither those of workers, nor those that hold a flow's positions."""
    names = {
        group_of_flow(LAKE, f"{one}->{other}"),
        group_of_landing(LAKE, one),
        name_at_target(LAKE, f"{one}->{other}"),
        f"mirrorlake-{LAKE}-{one}->{other}-fencing",
    }
    assert len(names) == 4
    assert group_of_landing(LAKE, one) != group_of_flow(LAKE, f"{other}->{one}")


def test_they_are_no_groups_that_a_flow_mirrors() -> None:
    for group in (group_of_flow(LAKE, "east->west"), group_of_landing(LAKE, "east")):
        assert is_own_group(group) and not of_other_lakes([group], None, "east->west")


def test_a_flow_of_another_lake_is_known_by_its_name() -> None:
    own, other = (name_at_target(lake, "east->west") for lake in (LAKE, "89abcdef"))
    more = [name_at_target(LAKE, "east->west.2"), "mirrorlake-nolake-east->west", "orders"]
    assert of_other_lakes([own, other, *more], LAKE, "east->west") == [other]
    assert of_other_lakes([own, other, *more], None, "east->west") == [own, other]


def test_their_topic_is_no_topic_that_a_flow_mirrors() -> None:
    for separator in (".", "_"):
        naming = Naming("default", "east", frozenset({"east"}), internal_separator=separator)
        assert naming.is_internal(TOPIC)


def test_a_process_is_known_by_what_it_commits_and_by_what_its_client_is_called() -> None:
    assert process_of(PROCESS.text()) == PROCESS
    assert process_of_client(client_id("west", PROCESS)) == PROCESS
    assert str(PROCESS) == "process 4711 on host-1.example.org"


def test_what_is_no_process_of_ours_is_none() -> None:
    for text in ("", "{}", "[]", "null", '{"host": "h", "pid": "x", "since": "s"}'):
        assert process_of(text) is None, text
    for text in ("rdkafka", "a/b/c", "a/b/c/d", "mirrorlake-west-consumer"):
        assert process_of_client(text) is None, text
