"""Topic configs by difference: what is sent, what never is, and that nothing is left to do
afterwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.config.flow import DEFAULT_CONFIG_PROPERTIES_EXCLUDE
from mirrorlake.control.config_plan import (
    ALWAYS,
    ConfigChange,
    ConfigPair,
    ConfigRules,
    creation_configs,
    plan_configs,
    plan_mirror,
)
from mirrorlake.kafka.values import ConfigValue, Origin, TopicConfigs

KEYS = (
    "cleanup.policy",
    "retention.bytes",
    "delete.retention.ms",
    "segment.bytes",
    "min.insync.replicas",
)
TARGET_DEFAULTS = dict.fromkeys(KEYS, "1")


def of(value: str | None, origin: Origin = "topic", fixed: bool = False) -> ConfigValue:
    return ConfigValue(value, origin, fixed)


def plan(
    source: TopicConfigs, target: TopicConfigs, rules: ConfigRules | None = None, factor: int = 3
) -> list[tuple[str, str | None]]:
    """Key and new value of every change."""
    changes = plan_configs(
        rules or ConfigRules(), ConfigPair("t", "east.t", source, target, factor)
    )
    return [(change.key, change.after) for change in changes]


def test_only_what_differs_is_sent() -> None:
    source = {
        "cleanup.policy": of("compact"),
        "retention.bytes": of("5"),
        "segment.bytes": of("9", "default"),
    }
    target = {
        "cleanup.policy": of("compact"),
        "retention.bytes": of("4"),
        "segment.bytes": of("9", "default"),
    }
    assert plan(source, target) == [("retention.bytes", "5")]
    assert plan(source, source) == []


def test_a_value_that_the_target_has_without_an_override_is_not_sent() -> None:
    assert plan({"retention.bytes": of("5")}, {"retention.bytes": of("5", "broker")}) == []


def test_removal_at_the_source_returns_the_target_to_its_default() -> None:
    assert plan({"retention.bytes": of("-1", "default")}, {"retention.bytes": of("5")}) == [
        ("retention.bytes", None)
    ]


@pytest.mark.parametrize("origin", ["default", "cluster", "broker"])
def test_defaults_from_target_leave_the_target_its_own(origin: Origin) -> None:
    source = {"retention.bytes": of("7", origin)}
    assert plan(source, {"retention.bytes": of("-1", "default")}) == []
    assert plan(source, {"retention.bytes": of("-1", "cluster")}) == []
    assert plan(source, {"retention.bytes": of("5")}) == [("retention.bytes", None)]


@pytest.mark.parametrize("origin", ["default", "cluster"])
def test_defaults_from_source_are_set_where_the_target_differs(origin: Origin) -> None:
    rules = ConfigRules(defaults_from="source")
    source = {"retention.bytes": of("7", origin)}
    assert plan(source, {"retention.bytes": of("-1", "default")}, rules) == [
        ("retention.bytes", "7")
    ]
    assert plan(source, {"retention.bytes": of("5")}, rules) == [("retention.bytes", "7")]
    assert plan(source, {"retention.bytes": of("7", "broker")}, rules) == []


def test_a_value_of_single_source_brokers_is_never_copied() -> None:
    rules = ConfigRules(defaults_from="source")
    source = {"retention.bytes": of("7", "broker")}
    assert plan(source, {"retention.bytes": of("-1", "default")}, rules) == []
    assert plan(source, {"retention.bytes": of("5")}, rules) == [("retention.bytes", None)]


def test_excluded_keys_are_left_as_somebody_set_them() -> None:
    rules = ConfigRules((*DEFAULT_CONFIG_PROPERTIES_EXCLUDE, r"delete\..*"))
    source = {
        "delete.retention.ms": of("1", "default"),
        "min.insync.replicas": of("2"),
        "retention.bytes": of("5"),
    }
    source |= {
        f"message.timestamp.{which}.max.ms": of("9") for which in ("difference", "before", "after")
    }
    target = {
        "delete.retention.ms": of("77"),
        "min.insync.replicas": of("1"),
        "retention.bytes": of("4"),
    }
    assert plan(source, target, rules) == [("retention.bytes", "5")]
    assert creation_configs(rules, source, 3) == {"retention.bytes": "5", **ALWAYS}


def test_an_exclusion_matches_whole_keys() -> None:
    rules = ConfigRules((r"retention",))
    assert plan({"retention.bytes": of("5")}, {"retention.bytes": of("4")}, rules) == [
        ("retention.bytes", "5")
    ]


def test_read_only_and_sensitive_keys_are_never_touched() -> None:
    assert (
        plan({"a": of("1", fixed=True), "b": of("1")}, {"a": of("2"), "b": of("2", fixed=True)})
        == []
    )
    assert creation_configs(ConfigRules(), {"a": of("1", fixed=True)}, 3) == ALWAYS


def test_keys_that_one_side_does_not_know() -> None:
    rules = ConfigRules(defaults_from="source")
    assert plan({"new.key": of("1")}, {}) == [
        ("new.key", "1")
    ]  # the target says what is wrong with it
    assert plan({"new.key": of("1", "default")}, {}, rules) == []  # a default that nobody asked for
    assert plan({}, {"new.key": of("1")}) == []


def test_a_mirror_that_nobody_could_write_to_is_refused() -> None:
    source, target = {"min.insync.replicas": of("2")}, {"min.insync.replicas": of("1", "default")}
    (change,) = plan_configs(ConfigRules(), ConfigPair("t", "east.t", source, target, 1))
    assert "more than the 1 replicas" in change.refusal
    assert creation_configs(ConfigRules(), source, 1) == ALWAYS
    assert creation_configs(ConfigRules(), source, 2) == {"min.insync.replicas": "2", **ALWAYS}


def test_creation_takes_what_was_set_on_the_topic_and_no_defaults() -> None:
    source = {
        "cleanup.policy": of("compact"),
        "segment.bytes": of("1", "broker"),
        "retention.bytes": of("2", "cluster"),
        "delete.retention.ms": of("3", "default"),
    }
    for defaults_from in ("source", "target"):
        assert creation_configs(ConfigRules(defaults_from=defaults_from), source, 3) == {
            "cleanup.policy": "compact",
            **ALWAYS,
        }


@pytest.mark.parametrize(
    ("there", "excluded", "told"),
    [
        (of("LogAppendTime", "broker"), True, ["CreateTime"]),
        (of("LogAppendTime", "cluster"), True, ["CreateTime"]),
        (of("LogAppendTime"), False, ["CreateTime"]),
        (of("LogAppendTime"), True, ["refused"]),  # somebody set it on the mirror by hand
        (of("CreateTime", "default"), True, []),
    ],
)
def test_a_mirror_keeps_the_timestamps_of_its_records(
    there: ConfigValue, excluded: bool, told: list[str]
) -> None:
    key = "message.timestamp.type"
    rules = ConfigRules((r"message\.timestamp\.type",) if excluded else ())
    for found in (of("LogAppendTime"), of("CreateTime", "default")):  # whatever the source's is
        changes = plan_mirror(rules, ConfigPair("t", "east.t", {key: found}, {key: there}, 3))
        assert ["refused" if change.refusal else change.after for change in changes] == told
        assert creation_configs(rules, {key: found}, 3) == ALWAYS


def test_rows_for_the_operator() -> None:
    row = ConfigChange("t", "east.t", "retention.bytes", "4", "5").row(None)
    assert (row.kind, row.resource, row.before, row.after) == (
        "config",
        "east.t",
        "retention.bytes=4",
        "retention.bytes=5",
    )
    assert (row.outcome, row.error) == ("done", None)
    refused = ConfigChange("t", "east.t", "retention.bytes", "4", None).row("no")
    assert (refused.after, refused.outcome, refused.error) == (
        "retention.bytes (default)",
        "refused",
        "no",
    )


values = st.sampled_from(["1", "2", "3"])
sources = st.dictionaries(
    st.sampled_from(KEYS),
    st.builds(
        of, values, st.sampled_from(["topic", "cluster", "broker", "default"]), st.booleans()
    ),
)
overrides = st.dictionaries(st.sampled_from(KEYS), values)
rule_sets = st.builds(
    ConfigRules,
    st.lists(st.sampled_from([key.replace(".", r"\.") for key in KEYS]), max_size=2).map(tuple),
    st.sampled_from(["source", "target"]),
)


def described(own: dict[str, str]) -> dict[str, ConfigValue]:
    """A target topic with some values of its own, as its cluster describes it."""
    return {
        key: of(own[key]) if key in own else of(default, "default")
        for key, default in TARGET_DEFAULTS.items()
    }


@given(sources, overrides, rule_sets)
def test_once_applied_nothing_differs_and_excluded_keys_are_untouched(
    source: dict[str, ConfigValue], own: dict[str, str], rules: ConfigRules
) -> None:
    before = dict(own)
    for change in plan_configs(rules, ConfigPair("t", "east.t", source, described(own), 3)):
        assert not change.refusal
        if change.after is None:
            del own[change.key]  # only what is there is taken away
        else:
            assert own.get(change.key) != change.after
            own[change.key] = change.after
    after = described(own)
    assert plan_configs(rules, ConfigPair("t", "east.t", source, after, 3)) == []
    for key, default in TARGET_DEFAULTS.items():
        found = source.get(key)
        excluded = key.replace(".", r"\.") in rules.exclude
        if found is None or found.fixed or excluded:
            assert own.get(key) == before.get(key)
        elif found.origin == "topic" or (
            rules.defaults_from == "source" and found.origin in ("default", "cluster")
        ):
            assert after[key].value == found.value
        else:
            assert after[key].value == default


@given(sources, rule_sets)
def test_a_mirror_made_with_its_configs_needs_only_the_sources_defaults(
    source: dict[str, ConfigValue], rules: ConfigRules
) -> None:
    made = described(creation_configs(rules, source, 3))
    left = plan_configs(rules, ConfigPair("t", "east.t", source, made, 3))
    assert all(
        rules.defaults_from == "source" and source[change.key].origin != "topic" for change in left
    )
