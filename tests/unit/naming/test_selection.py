"""Topic selection: MirrorMaker 2's rule, and that Spark's one regex selects exactly the same
names."""

import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mirrorlake.naming.naming import Naming
from mirrorlake.naming.patterns import check_pattern
from mirrorlake.naming.selection import DEFAULT_TOPICS_EXCLUDE, TopicSelection, matches_any

ALIASES = frozenset({"A", "B", "C", "a-b"})
NAMING = Naming("default", "A", ALIASES)


def selection(
    include: tuple[str, ...] = (".*",),
    exclude: tuple[str, ...] = DEFAULT_TOPICS_EXCLUDE,
    policy: str = "default",
) -> TopicSelection:
    return TopicSelection(include, exclude, replace(NAMING, policy_name=policy), "B")


def both(chosen: TopicSelection, topic: str) -> bool:
    """Ask both ways and insist that they agree."""
    selects = chosen.selects(topic)
    assert bool(re.fullmatch(chosen.java_pattern(), topic)) is selects, (
        chosen.java_pattern(),
        topic,
    )
    return selects


@pytest.mark.parametrize(
    "topic",
    ["t", "app.internal", "x-internal", "_schemas", "connect-offsets", "A.t", "C.t", "x.B.t"],
)
def test_replicated_by_default(topic: str) -> None:
    assert both(selection(), topic)


@pytest.mark.parametrize(
    "topic",
    [
        "x.replica",
        "__x",
        "mm2-offset-syncs.B.internal",
        "A.checkpoints.internal",
        "B.t",
        "C.B.t",
        ".x",
    ],
)
def test_not_replicated_by_default(topic: str) -> None:
    assert not both(selection(), topic)


def test_lists_match_whole_names_and_exclude_wins() -> None:
    chosen = selection(("orders|bills", "x.*"), ("x1|bills", ".*-tmp"))
    assert {
        topic
        for topic in ("orders", "bills", "orders2", "my-orders", "x1", "x2", "x-tmp", "xx")
        if both(chosen, topic)
    } == {"orders", "x2", "xx"}


def test_heartbeats_are_replicated_even_if_not_listed_but_not_in_a_cycle() -> None:
    chosen = selection((), ("heartbeats",))
    assert both(chosen, "heartbeats") and both(chosen, "C.heartbeats")
    assert (
        not both(chosen, "B.heartbeats")
        and not both(chosen, "x.heartbeats")
        and not both(chosen, "t")
    )


def test_identity_policy_has_no_protection_from_cycles() -> None:
    chosen = selection(policy="identity")
    assert both(chosen, "B.t") and not both(chosen, "B.heartbeats")


def test_heartbeats_may_be_left_to_the_lists() -> None:
    quiet = TopicSelection(("a.*",), (), NAMING, "B", heartbeats=False)
    assert both(quiet, "a") and not both(quiet, "heartbeats") and not both(quiet, "C.heartbeats")
    assert both(replace(quiet, include=(".*",)), "heartbeats")
    assert not both(replace(quiet, include=()), "heartbeats")
    assert both(replace(quiet, heartbeats=True), "C.heartbeats")


def test_internal_topics_may_keep_the_dot() -> None:
    naming = replace(NAMING, separator="_", internal_separator="_")
    named = TopicSelection((".*",), (), naming, "B")
    assert not both(named, "C_checkpoints_internal") and both(named, "C.checkpoints.internal")
    dotted = replace(named, naming=replace(naming, internal_separator="."))
    assert both(dotted, "C_checkpoints_internal") and not both(dotted, "C.checkpoints.internal")


SUFFIX = f"{__name__}:Suffix"


class Suffix:
    """A user's own policy: `t-C` is the mirror of `t` of C."""

    def remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}-{source_alias}"

    def source_of(self, topic: str) -> str | None:
        alias = topic.rpartition("-")[2]
        return alias if "-" in topic and alias in ALIASES else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("-")[0] if self.source_of(topic) else None


def test_what_only_a_users_policy_can_tell_is_landed_but_not_selected() -> None:
    chosen = selection(policy=SUFFIX)
    assert [chosen.selects(topic) for topic in ("t", "t-C", "t-B", "t-B-C", "B.t")] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert all(chosen.lands(topic) for topic in ("t", "t-C", "t-B", "t-B-C"))
    assert (
        not chosen.lands("x.replica")
        and not chosen.lands("B.heartbeats")
        and chosen.selects("C.heartbeats")
    )


PATTERNS = st.sampled_from(
    [
        ".*",
        "A",
        "a|b",
        "A|B.*",
        "(a|ab)(c|bcd)?",
        "[a-c]+",
        r"[^.]+",
        "a$|b",
        "^a.*",
        r"\w+\.a",
        r"A\.(?:a|b)",
        "(?i:a).*",
        "(?!a).*",
        ".*(?<!b)",
        "",
        "|",
        r"a{1,2}",
        r".*[-.]b",
        "heart.*",
        "a*?",
        r"[\]a]+",
        "mm2.*",
        ".*internal|",
        ".+b$",
    ]
)
PIECES = st.sampled_from(
    [
        "a",
        "b",
        "A",
        "B",
        "C",
        "c",
        "a-b",
        ".",
        "_",
        "-",
        "__",
        "mm2",
        "internal",
        "checkpoints",
        "heartbeats",
    ]
)
TOPICS = st.one_of(
    st.lists(PIECES, min_size=1, max_size=7).map("".join),
    st.text("abABC._-", min_size=1, max_size=8),
)
NAMINGS = st.builds(
    Naming,
    st.sampled_from(["default", "identity"]),
    st.just("A"),
    st.frozensets(st.sampled_from(["A", "B", "C", "a", "a-b"])),
    st.sampled_from([".", "_", "-", "--"]),
    st.sampled_from([".", "_", "-", "--"]),
)
SELECTIONS = st.builds(
    TopicSelection,
    st.lists(PATTERNS, max_size=3).map(tuple),
    st.lists(PATTERNS, max_size=3).map(tuple),
    NAMINGS,
    st.sampled_from(["B", "a", "a-b"]),
    st.booleans(),
)


@settings(max_examples=500, deadline=None)
@given(SELECTIONS, TOPICS)
@example(selection(("a|b",), ("b|c",)), "b")
def test_the_regex_selects_exactly_what_the_rule_selects(
    chosen: TopicSelection, topic: str
) -> None:
    both(chosen, topic)


@settings(max_examples=500, deadline=None)
@given(SELECTIONS, TOPICS)
def test_under_a_users_policy_the_regex_never_selects_less(
    chosen: TopicSelection, topic: str
) -> None:
    own = replace(chosen, naming=replace(chosen.naming, policy_name=SUFFIX))
    assert own.lands(topic) is bool(re.fullmatch(own.java_pattern(), topic))
    assert own.lands(topic) or not own.selects(topic)


@given(PATTERNS)
def test_patterns_of_the_property_are_legal(pattern: str) -> None:
    assert check_pattern(pattern) is None


@pytest.mark.parametrize(
    "pattern", [*DEFAULT_TOPICS_EXCLUDE, "(?:a|b)+", "[a-z&]", r"[\[]", "a{2}", "a{2,}", r"\u0041"]
)
def test_shared_syntax_is_accepted(pattern: str) -> None:
    assert check_pattern(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "*",
        "[a",
        r"(a)\1",
        "(?P<n>a)",
        "(?i)a",
        "[a[b]]",
        "[a&&b]",
        "[]a]",
        "a{,3}",
        "a{",
        r"\p{L}",
        r"a\Z",
        r"\Qa\E",
        "[a--b]",
        "(?x: a)",
        "(?#c)a",
        "(a)(?(1)b|c)",
        "(?-i:a)",
        "a{99999999999999999999}",
        r"[\b]",
    ],
)
def test_what_java_and_python_do_not_share_is_refused(pattern: str) -> None:
    assert check_pattern(pattern)


def test_an_empty_list_matches_nothing() -> None:
    assert not matches_any((), "a")
    assert matches_any(("b", "a"), "a")
    assert not matches_any(("a",), "ab")
