"""Naming policies against MirrorMaker 2's documented answers (mm2.md 1.4, KIP-382, KIP-690, KIP-1074)."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirrorlake.core.policy import (
    DefaultPolicy,
    IdentityPolicy,
    ReplicationPolicy,
    check_topic_name,
    internal_regex,
    is_cycle,
    is_heartbeats,
    is_internal,
    is_usable_alias,
)

ABC = frozenset({"A", "B", "C"})
DEFAULT = DefaultPolicy(".", ABC)
IDENTITY = IdentityPolicy(".", ABC, source_alias="A")


def test_default_policy_prefixes_and_strips_one_hop() -> None:
    assert DEFAULT.remote_topic("B", "A.t") == "B.A.t"
    assert DEFAULT.source_of("B.A.t") == "B"
    assert DEFAULT.upstream_topic("B.A.t") == "A.t"
    assert DEFAULT.upstream_topic("t") is None
    assert DefaultPolicy("_", ABC).remote_topic("A", "heartbeats") == "A_heartbeats"


@pytest.mark.parametrize("topic", ["orders.v1", "orders", ".A", "AB.t", "a.t"])
def test_a_dotted_user_topic_is_not_remote(topic: str) -> None:
    assert DEFAULT.source_of(topic) is None
    assert DEFAULT.upstream_topic(topic) is None


def test_identity_policy_renames_heartbeats_only() -> None:
    assert IDENTITY.remote_topic("A", "t") == "t"
    assert IDENTITY.remote_topic("A", "heartbeats") == "A.heartbeats"
    assert IDENTITY.remote_topic("A", "my-heartbeats") == "my-heartbeats"
    assert IDENTITY.source_of("B.t") == "A"
    assert IDENTITY.source_of("B.heartbeats") == "B"
    assert IDENTITY.upstream_topic("B.heartbeats") == "heartbeats"
    assert IDENTITY.upstream_topic("B.t") == "B.t"
    assert IdentityPolicy().source_of("t") is None


@pytest.mark.parametrize(
    ("topic", "expected"),
    [("B.t", True), ("C.B.t", True), ("A.t", False), ("C.t", False), ("t", False), ("x.B.t", False), ("B", False)],
)
def test_only_the_target_alias_makes_a_cycle(topic: str, expected: bool) -> None:
    assert is_cycle(DEFAULT, topic, "B") is expected


def test_identity_policy_sees_cycles_of_heartbeats_only() -> None:
    assert is_cycle(IDENTITY, "B.heartbeats", "B")
    assert is_cycle(IDENTITY, "A.B.heartbeats", "B")
    assert not is_cycle(IDENTITY, "B.t", "B")


@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY])
def test_heartbeats_after_any_number_of_hops(policy: ReplicationPolicy) -> None:
    assert all(is_heartbeats(policy, topic) for topic in ("heartbeats", "A.heartbeats", "B.A.heartbeats"))
    assert not any(is_heartbeats(policy, topic) for topic in ("x.heartbeats", "my-heartbeats", "heartbeats.A", "A."))


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("__consumer_offsets", True),
        (".hidden", True),
        ("mm2-offset-syncs.B.internal", True),
        ("mm2.internal", True),
        ("A.checkpoints.internal", True),
        ("app.internal", False),
        ("x-internal", False),
        ("_schemas", False),
        ("connect-offsets", False),
        ("checkpoints.internal", False),
        ("mm2-offset-syncs.B.internal.x", False),
    ],
)
def test_internal_topics_of_kafka_4_1_1(topic: str, expected: bool) -> None:
    assert is_internal(topic, ".") is expected


def test_internal_topics_follow_the_separator() -> None:
    assert is_internal("mm2-offset-syncs_B_internal", "_")
    assert is_internal("A_checkpoints_internal", "_")
    assert not is_internal("A.checkpoints.internal", "_")


PARTS = st.sampled_from(["mm2", "internal", "checkpoints", "heartbeats", "A", "B", "C", ".", "_", "-", "__", "2", "x"])
NAMES = st.lists(PARTS, min_size=1, max_size=7).map("".join)
SEPARATORS = st.sampled_from([".", "_", "-", "__", "-.-", "2"])


@given(NAMES, SEPARATORS, st.booleans())
@example("mm2internal", "2", False)
def test_regexes_say_what_the_functions_say(topic: str, separator: str, identity: bool) -> None:
    aliases = frozenset({"A", "B", "B-", "A_A", "mm2"})
    policy: ReplicationPolicy = IdentityPolicy(separator, aliases) if identity else DefaultPolicy(separator, aliases)
    assert bool(re.fullmatch(internal_regex(separator), topic)) is is_internal(topic, separator)
    assert bool(re.fullmatch(policy.heartbeats_regex(), topic)) is is_heartbeats(policy, topic)
    for target in sorted(aliases):
        regex = policy.cycle_regex(target)
        assert (regex is not None and bool(re.fullmatch(regex, topic))) is is_cycle(policy, topic, target)


@given(st.sampled_from(["A", "B", "a-b", "A_A", "B-"]), NAMES, SEPARATORS)
def test_remote_names_read_back(alias: str, topic: str, separator: str) -> None:
    policy = DefaultPolicy(separator, frozenset({alias}))
    remote = policy.remote_topic(alias, topic)
    if is_usable_alias(alias, separator):
        assert (policy.source_of(remote), policy.upstream_topic(remote)) == (alias, topic)


@pytest.mark.parametrize("name", ["a", "x" * 249, "A.b_c-9", "...", "_"])
def test_legal_topic_names(name: str) -> None:
    assert check_topic_name(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "empty"), (".", '"."'), ("..", '".."'), ("x" * 250, "250"), ("a b", "' '"), ("a\n", r"'\n'"), ("ü", "'ü'")],
)
def test_illegal_topic_names_give_the_reason(name: str, reason: str) -> None:
    assert reason in (check_topic_name(name) or "")
