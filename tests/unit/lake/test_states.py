"""What is noted of how topics of a source are, and when: only what changed, with the ACLs that
apply."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.kafka.values import Acl
from mirrorlake.lake.states import States
from mirrorlake.lake.topic_states import TopicState, applying_acls
from mirrorlake.testing import MemoryLake
from tests.support.acls import acl
from tests.support.lake_rows import ago

ORDERS, EVERYTHING = acl("orders"), acl("*", "DESCRIBE")
BELOW = acl("ord", "WRITE", pattern="PREFIXED")
NAMES = st.text("ab*", min_size=1, max_size=4)


def row(topic: str, state: TopicState) -> dict[str, object]:
    """As the lake tells it."""
    acls = None if state.acls is None else [vars(acl) for acl in state.acls]
    return {
        **vars(state),
        "topic": topic,
        "noted_later": False,
        "since": ago(60),
        "configs": dict(state.configs),
        "acls": acls,
    }


def lake(**states: TopicState) -> MemoryLake:
    return MemoryLake({"states_as_of": [row(topic, state) for topic, state in states.items()]})


def noted(lake: MemoryLake) -> dict[str, object]:
    """The ACLs that were noted last, by topic."""
    return {found["topic"]: found["acls"] for found in lake.appended.get("states", ())}


@given(
    st.sets(NAMES), st.sets(st.builds(acl, NAMES, pattern=st.sampled_from(["LITERAL", "PREFIXED"])))
)
def test_an_acl_applies_as_kafka_says(topics: set[str], acls: set[Acl]) -> None:
    def applies(acl: Acl, topic: str) -> bool:
        if acl.pattern == "PREFIXED":
            return topic.startswith(acl.name)
        return acl.name in (topic, "*")

    assert applying_acls(topics, acls) == {
        topic: tuple(sorted(acl for acl in acls if applies(acl, topic))) for topic in topics
    }


def test_acls_are_noted_where_they_changed_and_nowhere_else() -> None:
    there = lake(orders=TopicState(2, 1, {"a": "b"}, "id"), other=TopicState(1, 1))
    states = States(there)
    acls = frozenset({ORDERS, BELOW, EVERYTHING})
    states.note_acls("east", acls)
    everywhere = vars(EVERYTHING)
    assert noted(there) == {
        "other": [everywhere],
        "orders": [everywhere, vars(ORDERS), vars(BELOW)],
    }
    assert there.appended["states"][0]["configs"] == [("a", "b")]  # the rest is as it was

    there.answers["states_as_of"] = [
        row(topic, state) for topic, state in states.newest("east").items()
    ]
    there.appended.clear()
    states.note_acls("east", frozenset(acls))
    States(there).note_acls("east", acls)
    assert there.appended == {}
    states.note_acls("east", acls - {BELOW})
    assert noted(there) == {"orders": [everywhere, vars(ORDERS)]}


def test_who_tells_no_acls_changes_none() -> None:
    known = TopicState(2, 1, {}, "id", (ORDERS,))
    there = lake(orders=known)
    states = States(there)
    states.note("east", {"orders": replace(known, acls=None)})
    assert there.appended.get("states", []) == []
    states.note(
        "east", {"orders": replace(known, acls=None, configs={"a": "b"}), "fresh": TopicState(1, 1)}
    )
    assert noted(there) == {"orders": [vars(ORDERS)], "fresh": None}


def test_a_topic_that_comes_later_has_the_acls_that_were_told_before() -> None:
    there = lake()
    states = States(there)
    states.note_acls("east", frozenset({BELOW}))
    assert there.appended == {}
    states.note("east", {"orders": TopicState(1, 1), "x": TopicState(1, 1)})
    assert noted(there) == {"orders": [vars(BELOW)], "x": []}


def test_what_another_process_noted_since_is_not_undone() -> None:
    there = lake(orders=TopicState(2, 1, {}, "id"))
    states = States(there)
    states.newest("east")
    there.answers["states_as_of"] = [row("orders", TopicState(6, 1, {}, "id"))]
    states.note_acls("east", frozenset({ORDERS}))
    assert [found["partitions"] for found in there.appended["states"]] == [6]


def test_who_takes_over_notes_what_is_again_as_it_noted_last() -> None:
    """A noted 2 partitions, B took over and noted 3 of a topic made again, and A takes over from
    it, when the topic has 2 again."""
    was, between = TopicState(2, 1, {}, "a"), TopicState(3, 1, {}, "b")
    there = lake(orders=was)
    states = States(there)
    assert states.newest("east")["orders"] == was
    there.answers["states_as_of"] = [row("orders", between)]
    states.forget("east")
    states.note("east", {"orders": was})
    assert [found["partitions"] for found in there.appended["states"]] == [2]
