"""What is refused before the first record moves, trap by trap, and the laws behind it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorlake.checks.problem import Problem, left_out, refused_flows
from mirrorlake.checks.routes import ClusterTopic, Cycle, Routes, examples
from mirrorlake.checks.rules import check_flows
from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.control.topic_plan import plan_topics
from mirrorlake.naming.patterns import check_pattern
from mirrorlake.naming.policy import check_topic_name
from mirrorlake.naming.selection import matches_any

NAMES = ("east", "north", "south", "west")


def topology(
    flows: Mapping[str, Mapping[str, object]], aliases: Collection[str] = NAMES
) -> Topology:
    return Topology.model_validate(
        {
            "clusters": {alias: {"bootstrap_servers": "127.0.0.1:9092"} for alias in aliases},
            "lake": {"path": "./lake"},
            "flows": flows,
        },
        context={"directory": Path(__file__).parent / "policies"},
    )


def check(
    flows: Mapping[str, Mapping[str, object]],
    topics: Mapping[str, Collection[str]] | None = None,
    ids: Mapping[str, str] | None = None,
    known: Mapping[str, str] | None = None,
    brokers: Mapping[str, int] | None = None,
) -> list[Problem]:
    """Check flows between clusters whose ids are `id-<alias>` unless told otherwise."""
    file = topology(
        flows, sorted({alias for flow in flows for alias in flow.split("->")} | set(NAMES))
    )
    all_ids = {alias: f"id-{alias}" for alias in file.clusters}
    problems = check_flows(
        file.active_flows(), {**all_ids, **(ids or {})}, topics or {}, known, brokers
    )
    for problem in problems:
        assert problem.fix or problem.severity == "note"
        assert (
            not str(problem).endswith(".")
            and "\n" not in str(problem)
            and set(problem.flows) <= set(flows)
        )
    return problems


def rules(problems: Collection[Problem], severity: str = "refuse") -> dict[str, set[str]]:
    """The rules that spoke, each with the flows it spoke of."""
    found: dict[str, set[str]] = {}
    for problem in problems:
        if problem.severity == severity:
            found.setdefault(problem.rule, set()).update(problem.flows)
    return found


IDENTITY = {"policy": "identity"}
HEADERS = {"policy": "identity", "provenance": "headers"}
BOTH = {"east->west", "west->east"}


# Trap 1: a flow whose source is its target, under two names.
def test_a_cluster_mirrored_onto_itself_is_refused_by_its_id() -> None:
    problems = check(
        {"east->west": {}, "east->north": {}}, {"east": ["t"]}, ids={"west": "id-east"}
    )
    assert rules(problems)["same-cluster"] == {"east->west"}
    assert "east and west are both cluster id-east" in str(problems[0])
    assert "bootstrap_servers" in problems[0].fix


# Trap 2: one cluster under two aliases makes a.b.a.b.topic without end (KAFKA-9914).
@pytest.mark.parametrize("policy", ["default", "identity"])
def test_one_cluster_under_two_aliases_is_refused(policy: str) -> None:
    flows = {
        "east->west": {"policy": policy},
        "west->north": {"policy": policy},
        "west->south": {"policy": policy},
    }
    problems = check(flows, {"east": ["t"], "north": ["t"]}, ids={"north": "id-east"})
    assert rules(problems) == {"two-aliases": {"east->west", "west->north"}}
    assert "east and north are the same cluster id-east under 2 aliases" in str(problems[0])
    assert problems[0].fix == "use one alias"


# Trap 3: overlapping subscriptions bring the same records to one target topic twice.
def test_two_ways_to_one_target_topic_are_refused() -> None:
    flows = {"east->west": IDENTITY, "east->north": IDENTITY, "north->west": IDENTITY}
    problems = check(flows, {"east": ["orders", "bills"]})
    assert rules(problems) == {"twice": {"east->west", "north->west"}}
    (problem,) = problems
    # orders, and any other
    assert "topic bills of cluster east (and 2 other topics)" in problem.sentence
    assert "by east->west and by east->north, north->west" in problem.sentence


def test_two_ways_are_fine_where_names_or_topics_differ() -> None:
    topics = {"east": ["orders", "bills"]}
    assert check({"east->west": {}, "east->north": {}, "north->west": {}}, topics) == []
    apart = {
        "east->west": {**IDENTITY, "topics": "bills"},
        "east->north": {**IDENTITY, "topics": "orders"},
    }
    assert check({**apart, "north->west": IDENTITY}, topics) == []


def test_a_full_mesh_under_identity_is_refused_even_with_provenance() -> None:
    """A record of east reaches west directly and through north; no header says that it was on west
    already."""
    mesh = {
        f"{source}->{target}": HEADERS
        for source, target in permutations(("east", "north", "west"), 2)
    }
    assert "twice" in rules(check(mesh, {"east": ["t"]}))


# Trap 4: renaming off in both directions: each side sends back what it got.
def test_identity_in_both_directions_is_refused_without_provenance() -> None:
    problems = check({"east->west": IDENTITY, "west->east": IDENTITY}, {"east": ["orders"]})
    assert rules(problems) == {"round": BOTH}
    assert "topic orders of cluster east" in str(problems[0])
    assert "provenance: headers on east->west and west->east" in problems[0].fix


def test_it_is_refused_while_there_is_no_topic_yet() -> None:
    assert rules(
        check({"east->west": IDENTITY, "west->east": {**IDENTITY, "topics": "orders.*"}})
    ) == {"round": BOTH}


def test_one_way_with_headers_is_not_enough() -> None:
    problems = check({"east->west": HEADERS, "west->east": IDENTITY}, {"east": ["orders"]})
    assert rules(problems) == {"round": BOTH}
    assert "provenance: headers on west->east," in problems[0].fix


@pytest.mark.parametrize("topics", [{}, {"east": ["orders"], "west": ["orders", "bills"]}])
def test_with_provenance_both_directions_are_fine(topics: dict[str, list[str]]) -> None:
    assert check({"east->west": HEADERS, "west->east": HEADERS}, topics) == []


def test_both_directions_are_fine_when_topics_do_not_overlap() -> None:
    flows = {
        "east->west": {**IDENTITY, "topics": "a.*"},
        "west->east": {**IDENTITY, "topics": ["b.*", "a[.]x"]},
    }
    topics = {"east": ["ab", "bx"], "west": ["ab", "bx"]}
    assert rules(check(flows, topics)) == {}
    assert rules(check(flows, {"west": ["a.x"]})) == {"round": BOTH}


# Trap 5: renaming off round a ring of three.
def test_an_identity_ring_is_refused_without_provenance_and_fine_with_it() -> None:
    ring = ("east->west", "west->north", "north->east")
    assert rules(check(dict.fromkeys(ring, IDENTITY), {"north": ["t"]})) == {"round": set(ring)}
    assert check(dict.fromkeys(ring, HEADERS), {"north": ["t"]}) == []
    broken = dict.fromkeys(ring, HEADERS) | {
        "north->east": {"policy": "default", "provenance": "headers"}
    }
    assert "endless-names" in rules(check(broken, {"north": ["t"]}))


def test_a_hub_with_two_spokes_is_fine_with_provenance() -> None:
    spokes = ("north->east", "east->north", "north->west", "west->north")
    topics = {alias: ["t"] for alias in ("east", "north", "west")}
    problems = check(dict.fromkeys(spokes, HEADERS), topics)
    assert rules(problems) == {}
    assert rules(problems, "note") == {"fan-in": {"east->north", "west->north"}}


# Trap 6: an alias was changed, or given to another cluster.
def test_a_changed_alias_is_refused() -> None:
    problems = check(
        {"east->west": {}, "north->west": {}},
        {"east": ["t"]},
        known={"id-east": "oldeast", "id-west": "west"},
    )
    assert rules(problems) == {"changed-alias": {"east->west"}}
    assert (
        "which this lake knows as oldeast" in str(problems[0])
        and "call it oldeast again" in problems[0].fix
    )


def test_an_alias_given_to_another_cluster_is_refused() -> None:
    problems = check(
        {"east->west": {}, "north->west": {}}, {"east": ["t"]}, known={"id-before": "east"}
    )
    assert rules(problems) == {"reused-alias": {"east->west"}}
    assert (
        check({"east->west": {}}, known={"id-before": "east", "id-east": "east", "id-west": "west"})
        == []
    )


# Trap 7: names over the limit, at a later hop of a chain.
def test_a_name_that_gets_too_long_along_a_chain_is_left_out_where_it_does() -> None:
    fits_once, fits_twice = "x" * 243, "x" * 239
    flows = {"east->west": {}, "west->north": {}}
    problems = check(flows, {"east": [fits_once, fits_twice, "y" * 249]})
    assert refused_flows(problems) == {}
    assert list(left_out(problems, "east->west")) == ["y" * 249]
    assert list(left_out(problems, "west->north")) == [f"east.{fits_once}"]
    (chained,) = left_out(problems, "west->north").values()
    assert "(which comes by east->west)" in str(chained) and "Kafka allows 249" in str(chained)


# Trap 8: replication factor 2 (MirrorMaker 2's default) on a cluster of one broker.
def test_a_factor_that_the_target_cannot_have_is_lowered_and_told() -> None:
    flows = {"east->west": {"replication_factor": 2}, "east->north": {"replication_factor": 2}}
    (problem,) = check(flows, brokers={"west": 1, "north": 3})
    assert (problem.rule, problem.severity, problem.flows) == (
        "replication-factor",
        "note",
        ("east->west",),
    )
    assert "replication_factor 2, but cluster west has 1 broker: topics are made with 1" in str(
        problem
    )


@dataclass(frozen=True)
class Seen:
    partitions: int
    factor: int


@pytest.mark.parametrize(
    ("brokers", "factor", "noted"), [(1, 1, True), (2, 2, True), (3, 3, False), (5, 3, False)]
)
def test_a_topic_keeps_its_sources_factor_as_far_as_there_are_brokers(
    brokers: int, factor: int, noted: bool
) -> None:
    flow = flow_of({})
    (plan,) = plan_topics(
        flow.selection, source={"t": Seen(4, 3)}, target={}, target_brokers=brokers, factor=None
    )
    assert (plan.target_topic, plan.partitions, plan.factor, plan.action) == (
        "east.t",
        4,
        factor,
        "create",
    )
    assert bool(plan.note) is noted
    (refused,) = plan_topics(
        flow.selection,
        source={"t": Seen(4, 3)},
        target={},
        target_brokers=3,
        factor=None,
        left_out={"t": "told"},
    )
    assert (refused.action, refused.reason) == ("refuse", "told")


# Trap 9: user topics with a dot are taken for mirrors.
def test_user_topics_with_dots_are_no_mirrors() -> None:
    selection = flow_of({}).selection
    assert all(selection.selects(topic) for topic in ("orders.v1", "westward.x", "x.west.y"))
    assert not selection.selects("west.orders") and not selection.selects("north.west.orders")
    assert (
        check({"east->west": {}, "west->east": {}}, {"east": ["orders.v1"], "west": ["orders.v1"]})
        == []
    )


# Trap 10: user topics that end in .internal or -internal are not mirrored (KAFKA-17200).
def test_user_topics_that_sound_internal_are_mirrored() -> None:
    selection = flow_of({}).selection
    assert all(
        selection.selects(topic)
        for topic in ("app.internal", "x-internal", "_schemas", "connect-offsets")
    )
    assert not any(
        selection.selects(topic) for topic in ("__consumer_offsets", "mm2-status.east.internal")
    )


# Trap 11: two separators: neither direction knows the other's names for mirrors (KAFKA-15102 and
# kin).
def test_two_separators_that_would_lengthen_names_for_ever_are_refused() -> None:
    flows = {"east->west": {}, "west->east": {"replication_policy_separator": "_"}}
    problems = check(flows, {"east": ["orders"]})
    assert rules(problems) == {"endless-names": BOTH}
    assert "in a loop by east->west and west->east, under a longer name each time" in str(
        problems[0]
    )
    assert (
        check({flow: {"replication_policy_separator": "_"} for flow in flows}, {"east": ["orders"]})
        == []
    )


def test_heartbeats_alone_may_go_round() -> None:
    """They take aliases under every policy, so two separators lengthen their names, whatever else
    is shared."""
    there = {**HEADERS, "topics": "x.*"}
    back = {**HEADERS, "topics_exclude": "x.*", "replication_policy_separator": "_"}
    problems = check({"east->west": there, "west->east": back})
    assert rules(problems) == {"endless-names": BOTH} and "topic heartbeats of" in str(problems[0])
    quiet = {"heartbeats_replication_enabled": False}
    assert check({"east->west": {**there, **quiet}, "west->east": {**back, **quiet}}) == []


def test_default_one_way_and_identity_back_is_refused() -> None:
    assert rules(check({"east->west": {}, "west->east": IDENTITY}, {"east": ["orders"]})) == {
        "endless-names": BOTH
    }
    assert rules(
        check({"east->west": {**HEADERS, "policy": "default"}, "west->east": HEADERS})
    ) == {"endless-names": BOTH}


# Trap 12: a policy of one's own that makes one topic of two, or does not know its own mirrors.
def test_a_policy_that_makes_one_topic_of_two_leaves_both_out() -> None:
    problems = check(
        {"east->west": {"policy": "rule_policies.py:Lower"}},
        {"east": ["Orders", "orders", "bills"]},
    )
    assert refused_flows(problems) == {}
    assert sorted(left_out(problems, "east->west")) == ["Orders", "orders"]
    assert "into topic orders of cluster west, where topic orders of cluster east goes too" in str(
        problems[0]
    )


def test_a_policy_that_does_not_know_its_mirrors_is_refused_in_both_directions() -> None:
    suffix, blind = {"policy": "rule_policies.py:Suffix"}, {"policy": "rule_policies.py:Blind"}
    assert check({"east->west": suffix, "west->east": suffix}, {"east": ["t"], "west": ["t"]}) == []
    assert check({"east->west": blind}, {"east": ["t"]}) == []
    assert rules(check({"east->west": blind, "west->east": blind}, {"east": ["t"]})) == {
        "endless-names": BOTH
    }


# Trap 13: several sources into one topic: meant under identity names, a collision otherwise.
def test_fan_in_is_a_note_under_identity_names() -> None:
    problems = check(
        {"east->west": IDENTITY, "north->west": IDENTITY},
        {"east": ["t", "u"], "north": ["t", "u", "v"]},
    )
    assert rules(problems) == {}
    assert rules(problems, "note") == {"fan-in": {"east->west", "north->west"}}
    assert "topic t of cluster west (and 1 other topic)" in str(problems[0])
    assert "has one position there" in str(problems[0])
    assert check({"east->west": {}, "north->west": {}}, {"east": ["t"], "north": ["t"]}) == []


def test_fan_in_by_accident_is_left_out() -> None:
    problems = check(
        {"east->west": {}, "north->west": IDENTITY}, {"east": ["t"], "north": ["east.t", "u"]}
    )
    assert refused_flows(problems) == {}
    assert list(left_out(problems, "east->west")) == ["t"] and list(
        left_out(problems, "north->west")
    ) == ["east.t"]


# Trap 14: provenance that is taken off before the record has stopped going round.
def test_stripping_within_a_round_is_refused() -> None:
    flows = {"east->west": HEADERS, "west->east": {**HEADERS, "provenance": "strip"}}
    problems = check(flows, {"east": ["t"]})
    assert rules(problems) == {"strip-in-round": BOTH}
    assert problems[0].fix == "set provenance: headers on west->east"
    last_hop = {
        "east->west": HEADERS,
        "west->east": HEADERS,
        "west->north": {**HEADERS, "provenance": "strip"},
    }
    assert check(last_hop, {"east": ["t"]}) == []


# Trap 15: defaults that nobody wants: ten minutes until a new topic is seen, groups not synced, one
# task.
def test_defaults_that_people_expect() -> None:
    flow = flow_of({}).settings
    intervals = [
        getattr(flow, name) for name in type(flow).model_fields if name.endswith("interval_seconds")
    ]
    assert len(intervals) == 8 and max(intervals) <= 10
    assert (
        flow.sync_group_offsets_enabled
        and flow.delivery == "exactly_once"
        and flow.produce_tasks > 1
    )
    # the source's, so that min.insync.replicas stays within it
    assert flow.replication_factor is None


# Patterns mean whole names, so that `orders` does not bring orders-archive along; stray spaces do
# no harm.
def test_patterns_match_whole_names() -> None:
    selection = flow_of({"topics": " orders , bills.* "}).selection
    assert [
        t for t in ("orders", "orders-archive", "my-orders", "bills2") if selection.selects(t)
    ] == ["orders", "bills2"]


def flow_of(settings: Mapping[str, object]) -> ResolvedFlow:
    return topology({"east->west": settings}).flow("east->west")


def test_flows_that_are_refused_do_not_hide_what_the_others_do() -> None:
    flows = {"east->west": {}, "north->south": IDENTITY, "south->north": IDENTITY}
    problems = check(flows, {"north": ["t"]}, ids={"west": "id-east"})
    assert set(refused_flows(problems)) == set(flows)


def test_what_is_refused_for_its_clusters_is_not_checked_for_its_names() -> None:
    problems = check(
        {"east->west": IDENTITY, "west->east": IDENTITY}, {"east": ["t"]}, ids={"west": "id-east"}
    )
    assert set(rules(problems)) == {"same-cluster", "two-aliases"}


def test_a_cluster_that_does_not_answer_holds_up_no_check() -> None:
    flows = {"east->west": IDENTITY, "west->east": IDENTITY, "north->west": {}}
    file = topology(flows)
    assert rules(check_flows(file.active_flows(), {}, {})) == {"round": BOTH}


def test_more_names_than_can_be_followed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirrorlake.checks.routes.STEP_LIMIT", 1000)
    mesh = {
        f"{source}->{target}": {}
        for source, target in permutations([f"c{number}" for number in range(6)], 2)
    }
    (problem,) = check(mesh)
    assert (problem.rule, problem.severity) == ("too-many-names", "note")
    loop = {**IDENTITY, "topics": "a.*"}
    flows = {"east->west": loop, "west->east": loop, "east->north": {"topics": "[0-9]+"}}
    problems = check(flows, {"east": [f"{number}" for number in range(2000)]})
    assert rules(problems) == {"round": BOTH}, "what the flows are like is known all the same"
    assert "too-many-names" in rules(problems, "note")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (".*", ["any"]),
        ("orders.*", ["ordersany"]),
        (r"a\.b|c.+", ["a.b", "cany"]),
        ("[ab]", []),
        ("(?!any).*", []),
    ],
)
def test_examples_of_patterns(pattern: str, names: list[str]) -> None:
    assert examples(pattern) == names


PAIRS = [f"{source}->{target}" for source, target in permutations(NAMES, 2)]
TOPICS = st.fixed_dictionaries(
    {
        alias: st.frozensets(
            st.sampled_from(["t", "u.v", "east.t", "west.north.t", "heartbeats", "x" * 240])
        )
        for alias in NAMES
    }
)
SETTINGS = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["default", "identity"]),
        "topics": st.sampled_from([".*", "t", "t|east.*", "u.*"]),
    },
    optional={
        "provenance": st.sampled_from(["none", "headers", "strip"]),
        "replication_policy_separator": st.sampled_from([".", "_"]),
    },
)
FLOWS = st.dictionaries(st.sampled_from(PAIRS), SETTINGS, min_size=1, max_size=5)


@settings(max_examples=150, deadline=None)
@given(
    st.frozensets(st.sampled_from(PAIRS), min_size=1, max_size=8),
    TOPICS,
    st.sampled_from([".", "_", "--"]),
)
def test_no_topic_goes_round_under_the_default_policy(
    pairs: frozenset[str], topics: dict[str, frozenset[str]], separator: str
) -> None:
    file = topology({pair: {"replication_policy_separator": separator} for pair in sorted(pairs)})
    routes = Routes(file.active_flows())
    for alias, names in topics.items():
        for name in names:
            assert not [
                found
                for found in routes.follow(ClusterTopic(alias, name))
                if isinstance(found, Cycle)
            ]


@settings(max_examples=300, deadline=None)
@given(FLOWS, TOPICS)
def test_what_is_allowed_brings_each_record_once(
    flows: dict[str, dict[str, object]], topics: dict[str, frozenset[str]]
) -> None:
    """Send one record from every topic through the flows that may run, obeying provenance; count
    what arrives."""
    problems = check(flows, topics)
    refused = refused_flows(problems)
    file = topology(flows)
    going = [flow for flow in file.active_flows() if flow.name not in refused]
    for alias, names in topics.items():
        for name in names:
            arrived = simulate(file, going, problems, alias, name)
            assert max(arrived.values(), default=0) <= 1, (alias, name, arrived)


@settings(max_examples=300, deadline=None)
@given(FLOWS, TOPICS)
def test_what_is_refused_would_bring_some_record_twice(
    flows: dict[str, dict[str, object]], topics: dict[str, frozenset[str]]
) -> None:
    """Not one refusal too many: let all flows run, and some record arrives more than once."""
    problems = check(flows, topics)
    spoke = rules(problems).keys()
    if "endless-names" in spoke or not spoke & {"round", "twice", "strip-in-round"}:
        return
    file = topology(flows)
    names = {name for known in topics.values() for name in known} | {
        "any",
        "u.v",
        "uany",
        "t",
        "eastany",
        "heartbeats",
    }
    counts = [
        max(simulate(file, file.active_flows(), problems, alias, name, refused_too=True).values())
        for alias in NAMES
        for name in names
    ]
    assert max(counts) > 1


def simulate(
    file: Topology,
    flows: list[ResolvedFlow],
    problems: list[Problem],
    alias: str,
    topic: str,
    refused_too: bool = False,
) -> dict[tuple[str, str], int]:
    """How often a record written to `topic` gets to each (cluster, topic); gives up at 200
    arrivals."""
    arrived: dict[tuple[str, str], int] = {(alias, topic): 1}
    moving: list[tuple[str, str, tuple[str, ...]]] = [(alias, topic, ())]
    while moving and sum(arrived.values()) < 200:
        where, name, headers = moving.pop()
        for flow in flows:
            if (
                flow.source != where
                or not flow.selection.selects(name)
                or name in left_out(problems, flow.name)
            ):
                continue
            keeps = flow.settings.provenance
            if keeps != "none" and flow.target in headers:
                continue
            new = flow.target_topic(name)
            if refused_too and check_topic_name(new) is not None:
                continue  # names that go round grow until no cluster takes them
            assert check_topic_name(new) is None
            key = (flow.target, new)
            arrived[key] = arrived.get(key, 0) + 1
            passed = {"none": headers, "headers": (*headers, where), "strip": ()}[keeps]
            moving.append((flow.target, new, passed))
    return arrived


def test_the_simulation_sees_what_goes_round() -> None:
    file = topology({"east->west": IDENTITY, "west->east": IDENTITY})
    assert max(simulate(file, file.active_flows(), [], "east", "t").values()) > 50


@given(st.text("ab.*+|\\[]^$-", max_size=12))
def test_examples_always_match(pattern: str) -> None:
    for name in [] if check_pattern(pattern) else examples(pattern):
        assert matches_any((pattern,), name) and check_topic_name(name) is None


def test_a_flow_without_a_pattern_is_noted() -> None:
    """As an import leaves one none of whose patterns it could carry."""
    (problem,) = check({"east->west": {"topics": []}, "west->east": {}}, {"east": ["orders"]})
    assert (problem.rule, problem.severity, problem.flows) == (
        "no-pattern",
        "note",
        ("east->west",),
    )
    assert "mirrors no topic but heartbeats" in problem.sentence


def test_a_pattern_that_no_name_can_match_is_noted() -> None:
    """By itself it looks like a flow with nothing to do, or like an exclusion that works."""
    flows = {
        "east->west": {
            "topics": ["orders.*", '"bills"'],
            "topics_exclude": [".*-tmp#"],
            "paused": ["orders all"],
        },
        "west->east": {"topics": ["orders.*", "a|b c"]},
    }
    problems = check(flows, {"east": ["orders"]})
    assert [(one.rule, one.severity, one.flows, one.subject) for one in problems] == [
        ("idle-pattern", "note", ("east->west",), "topics"),
        ("idle-pattern", "note", ("east->west",), "topics_exclude"),
        ("idle-pattern", "note", ("east->west",), "paused"),
    ]
    assert "holds '.*-tmp#', which matches no legal name of a topic: '#' is in none" in str(
        problems[1]
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"topics": ["oders"]}, "holds 'oders', by which it mirrors no topic that cluster east"),
        ({"topics": ["orders", "x.*", "y"]}, "holds 'x.*' (and 1 others), by which"),
        ({"topics": ["or.*"], "topics_exclude": ["orders"]}, "holds 'or.*', by which"),
        ({"topics": ["orders", ".*"]}, None),
        ({"paused": ["oders"]}, "paused of flow east->west holds 'oders', by which it pauses none"),
        ({"topics_exclude": ["orders"], "paused": ["orders"]}, "by which it pauses none of its"),
        ({"paused": ["orders"]}, None),
        ({"paused": True}, None),
    ],
)
def test_a_pattern_that_matches_no_topic_of_the_source_is_noted(
    settings: dict[str, Any], said: str | None
) -> None:
    """A typo in it was called healthy: heartbeats came through."""
    file = topology({"east->west": settings})
    problems = check_flows(file.active_flows(), {}, {"east": ["orders", "heartbeats"]})
    assert [problem.rule for problem in problems] == (["no-match"] if said else [])
    assert said is None or said in problems[0].sentence
    if ["oders"] in settings.values():
        assert "(there is orders)" in problems[0].fix
    assert check_flows(file.active_flows(), {}, {}) == [], "of a silent cluster nothing is known"


def test_what_other_flows_make_is_a_match_however_many_they_are() -> None:
    """At the first run nothing of it is there yet."""
    chain = ("east->west", "west->north", "north->south")
    patterns = ("orders", r"east\.orders", r"west\.east\.orders")
    flows = {flow: {"topics": [pattern]} for flow, pattern in zip(chain, patterns, strict=True)}
    there: dict[str, list[str]] = {"east": ["orders"], "west": [], "north": [], "south": []}
    assert check_flows(topology(flows).active_flows(), {}, there) == []
    noted = check_flows(topology(flows).active_flows(), {}, {**there, "east": []})
    assert [(one.rule, one.flows) for one in noted] == [("no-match", (flow,)) for flow in chain]
