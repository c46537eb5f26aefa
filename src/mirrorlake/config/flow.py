"""Settings of a flow in the topology file, under MirrorMaker 2's names (docs/mm2.md, "Settings").

`docs/settings.md` lists each setting, MirrorMaker 2's default, ours, and why they differ.
"""

import re
from datetime import date, datetime, timezone
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from mirrorlake.config.fields import Model, Names, names_of, patterns_of
from mirrorlake.naming.selection import DEFAULT_GROUPS_EXCLUDE, DEFAULT_TOPICS_EXCLUDE

DEFAULT_CONFIG_PROPERTIES_EXCLUDE = (
    r"follower\.replication\.throttled\.replicas",
    r"leader\.replication\.throttled\.replicas",
    r"message\.timestamp\.difference\.max\.ms",
    r"message\.timestamp\.before\.max\.ms",
    r"message\.timestamp\.after\.max\.ms",
    r"message\.timestamp\.type",
    r"unclean\.leader\.election\.enable",
    r"min\.insync\.replicas",
)
"""MirrorMaker 2's `config.properties.exclude`, and the names by which
`message.timestamp.difference.max.ms` goes since Kafka 3.6 (KIP-937): a mirror that has them refuses
what the source took long ago."""

_POLICY = re.compile(r"default|identity|([A-Za-z_]\w*(\.[A-Za-z_]\w*)*|[^:\r\n]+\.py):[A-Za-z_]\w*")
_SEPARATOR = re.compile(r"[a-zA-Z0-9._-]{1,16}")
Seconds = Annotated[int, Field(ge=1, le=7 * 86400)]
Factor = Annotated[int, Field(ge=1, le=32767)]


def start_of(value: object) -> object:
    """Turn a time that YAML has parsed back into text; leave other values as they are."""
    return value.isoformat() if isinstance(value, date) else value


def time_of_start(start: str) -> int | None:
    """The time in `start`, ms since 1970, in UTC if it names no zone; None for earliest and latest.
    Raises ValueError if it is not a time."""
    if start in ("earliest", "latest"):
        return None
    moment = datetime.fromisoformat(start.replace("Z", "+00:00"))
    return round(
        (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000
    )


class Flow(Model):
    """Settings of one flow, under MirrorMaker 2's names with `_` for `.` and with its meaning;
    docs/settings.md says what each is for.

    Intervals are in seconds. A factor of None means the source topic's, or 3 for our internal
    topics, but never more than the target's brokers. `policy` is default, identity,
    `package.module:Class` or `file.py:Class`. `paused` is true for the whole flow, or a list of
    patterns of topic names. `provenance` is none, headers, or strip (for the last hop); `start` is
    earliest, latest or a time. A `compression` of None is lz4, or zstd once the target has refused
    a record for its size.
    """

    enabled: bool = True
    paused: bool | Annotated[Names, BeforeValidator(names_of)] = False
    topics: Names = (".*",)
    topics_exclude: Names = DEFAULT_TOPICS_EXCLUDE
    groups: Names = (".*",)
    groups_exclude: Names = DEFAULT_GROUPS_EXCLUDE
    policy: str = "default"
    replication_policy_separator: str = "."
    replication_policy_internal_topic_separator_enabled: bool = True
    provenance: Literal["none", "headers", "strip"] = "none"
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    on_refused: Literal["stop", "park"] = "stop"
    produce_tasks: int = Field(default=2, ge=1)
    start: Annotated[str, BeforeValidator(start_of)] = "earliest"
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = None

    replication_factor: Factor | None = None
    refresh_topics_enabled: bool = True
    refresh_topics_interval_seconds: Seconds = 10
    sync_topic_configs_enabled: bool = True
    sync_topic_configs_interval_seconds: Seconds = 10
    config_properties_exclude: Names = DEFAULT_CONFIG_PROPERTIES_EXCLUDE
    use_defaults_from: Literal["source", "target"] = "target"
    sync_topic_acls_enabled: bool = True
    sync_topic_acls_interval_seconds: Seconds = 10
    heartbeats_replication_enabled: bool = True

    refresh_groups_enabled: bool = True
    refresh_groups_interval_seconds: Seconds = 10
    emit_checkpoints_enabled: bool = True
    emit_checkpoints_interval_seconds: Seconds = 10
    checkpoints_topic_replication_factor: Factor | None = None
    sync_group_offsets_enabled: bool = True
    sync_group_offsets_interval_seconds: Seconds = 10
    emit_offset_syncs_enabled: bool = False
    offset_syncs_topic_location: Literal["source", "target"] = "source"
    offset_syncs_topic_replication_factor: Factor | None = None
    emit_heartbeats_enabled: bool = True
    emit_heartbeats_interval_seconds: Seconds = 1
    heartbeats_topic_replication_factor: Factor | None = None
    sample_positions_interval_seconds: int = Field(default=10, ge=1, le=600)

    _check_patterns = field_validator(
        "topics", "topics_exclude", "groups", "groups_exclude", "config_properties_exclude"
    )(patterns_of)

    @field_validator("start")
    @classmethod
    def _check_start(cls, value: str) -> str:
        try:
            time_of_start(value)
        except ValueError:
            raise ValueError(
                "must be earliest, latest or a time, as 2026-11-21T03:12:00Z"
            ) from None
        return value

    @field_validator("policy")
    @classmethod
    def _check_policy(cls, value: str) -> str:
        if not _POLICY.fullmatch(value):
            raise ValueError(
                "must be default, identity or package.module:Class, or a file, as in "
                "naming.py:Class"
            )
        return value

    @field_validator("replication_policy_separator")
    @classmethod
    def _check_separator(cls, value: str) -> str:
        if not _SEPARATOR.fullmatch(value):
            raise ValueError("must be 1 to 16 letters, digits, dots, underscores or hyphens")
        return value

    @field_validator("paused")
    @classmethod
    def _check_paused(cls, value: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
        return value if isinstance(value, bool) else patterns_of(value)
