"""docs/settings.md says what the code does, and every setting of MirrorMaker 2 is here or has a
reason."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from mirrorlake.config.cluster import Cluster, Landing
from mirrorlake.config.flow import DEFAULT_CONFIG_PROPERTIES_EXCLUDE, Flow
from mirrorlake.config.flow_reasons import NOT_NEEDED, normal, reason
from mirrorlake.config.lake import Lake, Maintenance, Warehouse
from mirrorlake.config.metrics import Metrics, Otlp, Tracking
from mirrorlake.config.objectives import Objectives
from mirrorlake.config.topology import Topology

DOC = (Path(__file__).parents[3] / "docs" / "settings.md").read_text(encoding="utf-8")

MIRRORMAKER = """
name connector.class tasks.max enabled source.cluster.alias target.cluster.alias
replication.policy.class replication.policy.separator
replication.policy.internal.topic.separator.enabled admin.timeout.ms forwarding.admin.class
metric.reporters security.protocol ssl.truststore.location sasl.jaas.config key.converter
value.converter header.converter transforms predicates errors.tolerance errors.retry.timeout
errors.retry.delay.max.ms errors.log.enable config.action.reload tasks.max.enforce topics
topics.exclude topic.filter.class config.property.filter.class config.properties.exclude
use.defaults.from consumer.poll.timeout.ms refresh.topics.enabled refresh.topics.interval.seconds
sync.topic.configs.enabled sync.topic.configs.interval.seconds sync.topic.acls.enabled
sync.topic.acls.interval.seconds replication.factor offset.lag.max offset-syncs.topic.location
offset-syncs.topic.replication.factor emit.offset-syncs.enabled heartbeats.replication.enabled
use.incremental.alter.configs add.source.alias.to.metrics topics.blacklist groups.blacklist
config.properties.blacklist groups groups.exclude group.filter.class refresh.groups.enabled
refresh.groups.interval.seconds emit.checkpoints.enabled emit.checkpoints.interval.seconds
sync.group.offsets.enabled sync.group.offsets.interval.seconds checkpoints.topic.replication.factor
emit.heartbeats.enabled emit.heartbeats.interval.seconds heartbeats.topic.replication.factor
clusters config.providers dedicated.mode.enable.internal.rest listeners rest.advertised.host.name
offset.storage.replication.factor status.storage.replication.factor
config.storage.replication.factor exactly.once.source.support offset.flush.interval.ms
source.consumer.isolation.level target.producer.linger.ms producer.override.batch.size
topic.filter.plugin.version
"""
"""What MirrorMaker 2 can be told (docs/mm2.md, "Settings")."""

DEFAULTS = {
    "tasks_max": "`1`",
    "replication_factor": "`2`",
    "refresh_topics_interval_seconds": "`600`",
    "sync_topic_configs_interval_seconds": "`600`",
    "sync_topic_acls_interval_seconds": "`600`",
    "refresh_groups_interval_seconds": "`600`",
    "emit_checkpoints_interval_seconds": "`60`",
    "sync_group_offsets_enabled": "`false`",
    "sync_group_offsets_interval_seconds": "`60`",
    "checkpoints_topic_replication_factor": "`3`",
    "heartbeats_topic_replication_factor": "`3`",
    "enabled": "`false`",
    "emit_offset_syncs_enabled": "`true`",
    "offset_syncs_topic_replication_factor": "`3`",
    "config_properties_exclude": ", ".join(
        f"`{pattern}`"
        for pattern in DEFAULT_CONFIG_PROPERTIES_EXCLUDE
        if not pattern.startswith((r"message\.timestamp\.before", r"message\.timestamp\.after"))
    ),
}
"""MirrorMaker 2's defaults that are not ours (docs/mm2.md, "Settings")."""
NO_COUNTERPART = {
    "paused",
    "provenance",
    "delivery",
    "produce_tasks",
    "policy",
    "sample_positions_interval_seconds",
    "on_refused",
    "compression",
    "start",
}


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first cell of the heading is this, by name."""
    lines = DOC.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (
            cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]
        )
        assert name.strip("`") not in rows
        rows[name.strip("`")] = cells
    return rows


def shown(value: object) -> str:
    """A default as the tables write it."""
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value)
    if value is None or isinstance(value, bool):
        return f"`{ {None: 'null', True: 'true', False: 'false'}[value] }`"
    return f"`{value}`"


def defaults(model: type[BaseModel]) -> dict[str, str]:
    return {field.alias or name: shown(field.default) for name, field in model.model_fields.items()}


def test_every_setting_of_a_flow_is_documented_with_its_default() -> None:
    rows = table("setting")
    assert {name: cells[1] for name, cells in rows.items()} == defaults(Flow)
    assert all(cells[2] for cells in rows.values())


def test_the_documented_defaults_of_mirrormaker_are_theirs() -> None:
    rows = table("setting")
    for name, (theirs, ours, _) in rows.items():
        if name not in NO_COUNTERPART:
            assert theirs == DEFAULTS.get(name, ours), name
    assert rows["produce_tasks"][0] == DEFAULTS["tasks_max"]


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("key of a cluster", Cluster),
        ("key of `landing`", Landing),
        ("key of `lake`", Lake),
        ("key of `warehouse`", Warehouse),
        ("key of `tracking`", Tracking),
        ("key of `objectives`", Objectives),
        ("key of `maintain`", Maintenance),
        ("key of `metrics`", Metrics),
        ("key of `otlp`", Otlp),
    ],
)
def test_every_key_of_a_cluster_is_documented_with_its_default(
    heading: str, model: type[BaseModel]
) -> None:
    assert {name: cells[0] for name, cells in table(heading).items()} == defaults(model)


def test_every_block_of_the_file_is_named() -> None:
    blocks = DOC.partition("has the blocks ")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", blocks)) == set(Topology.model_fields)


def test_reasons_are_documented() -> None:
    assert {name: cells[0] for name, cells in table("setting of MirrorMaker 2").items()} == dict(
        NOT_NEEDED
    )
    families = table("for example")
    assert families and {name: cells[0] for name, cells in families.items()} == {
        name: reason(name) for name in families
    }


@pytest.mark.parametrize("name", MIRRORMAKER.split())
def test_each_setting_of_mirrormaker_is_here_or_has_a_reason(name: str) -> None:
    assert (normal(name) in Flow.model_fields) is (reason(name) is None)


@pytest.mark.parametrize(
    "name", [*Flow.model_fields, "topisc", "produce_task", "sinks", "my_setting"]
)
def test_no_reason_is_given_for_what_is_here_or_nobodys(name: str) -> None:
    assert reason(name) is None


def test_every_rule_is_documented() -> None:
    code = "".join(
        (Path(__file__).parents[3] / "src/mirrorlake/checks" / name).read_text(encoding="utf-8")
        for name in ("rules.py", "route_rules.py", "holdings.py", "other_lakes.py")
    )
    rules = dict(re.findall(r'Problem\(\s*"([a-z-]+)",\s*"(refuse|note)"', code))
    assert len(rules) == len(re.findall(r"\bProblem\(", code)) > 10
    assert set(table("rule")) == {rule for rule, severity in rules.items() if severity == "refuse"}
    assert all(f"`{rule}`" in DOC for rule in rules)


def test_reasons_are_clauses_that_name_what_exists() -> None:
    for why in NOT_NEEDED.values():
        assert why and not why.endswith(".") and "\n" not in why
        for told in re.findall(r"\bwrite ([a-z_]+)\b", why):
            assert told in {*Flow.model_fields, "it", "the"}, why
