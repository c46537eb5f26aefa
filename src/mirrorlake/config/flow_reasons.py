"""MirrorMaker 2's settings that mirrorlake lacks, and why each is not needed here (docs/mm2.md,
"Settings").

Names have `_` for `.` and `-`. Each of MirrorMaker 2's settings is a field of `config.flow.Flow`,
or `reason` explains it, for the importer and for errors about unknown keys. `docs/settings.md` has
the same list; a test keeps them equal.
"""

import re
from collections.abc import Mapping

_SMT = (
    "records are mirrored as they are, there are no transforms; change them where they are consumed"
)
_ERRORS = (
    "there is no Connect worker whose errors it would rule; on_refused says what becomes of "
    "a refused record"
)
_CONVERTER = "keys, values and headers are mirrored as bytes, so there is nothing to convert"
_REST = "there is no Connect worker and no REST port"
_SYNCS = "offset syncs are written from the table offset_map, which holds the exact map"

NOT_NEEDED: Mapping[str, str] = {
    # Shared by the three connectors
    "name": "a flow is named by its key, source->target",
    "connector_class": "there are no connectors; a flow mirrors topics, groups and heartbeats",
    "source_cluster_alias": "the alias is the key of the cluster under clusters",
    "target_cluster_alias": "the alias is the key of the cluster under clusters",
    "tasks_max": "write produce_tasks, the number of producers of the flow",
    "tasks_max_enforce": "there are no Connect tasks; produce_tasks is always kept",
    "replication_policy_class": (
        "write policy: default, identity or package.module:Class, a class in Python"
    ),
    "admin_timeout_ms": "calls to a cluster have a fixed deadline and are tried again",
    "forwarding_admin_class": "topics are made by the target cluster's own admin API",
    "metric_reporters": "metrics are the tables latency and positions, not JMX",
    "security_protocol": "write it as protocol into the security block of the cluster",
    "config_action_reload": "an edited topology file is taken up while mirrorlake runs",
    "transforms": _SMT,
    "predicates": _SMT,
    "key_converter": _CONVERTER,
    "value_converter": _CONVERTER,
    "header_converter": _CONVERTER,
    # Source connector
    "topic_filter_class": "write the patterns as topics and topics_exclude",
    "config_property_filter_class": "write the patterns as config_properties_exclude",
    "consumer_poll_timeout_ms": ("landing polls by itself; trigger_ms in landing sets the pace"),
    "offset_lag_max": "the offset map is exact, there is nothing to tune",
    "use_incremental_alter_configs": (
        "configs are always altered incrementally, as in MirrorMaker 2 since 4.0"
    ),
    "add_source_alias_to_metrics": "every row of the tables names its flow",
    "topics_blacklist": "write topics_exclude",
    "topics_whitelist": "write topics",
    "groups_blacklist": "write groups_exclude",
    "groups_whitelist": "write groups",
    "config_properties_blacklist": "write config_properties_exclude",
    "whitelist": "write topics",
    "blacklist": "write topics_exclude",
    "exactly_once_support": "write delivery; exactly_once is the default",
    "transaction_boundary": "transactions end with the batches of the stage",
    "transaction_boundary_interval_ms": "transactions end with the batches of the stage",
    "offsets_storage_topic": (
        "positions are kept in the table offset_map and in the flow's group on the target"
    ),
    # Checkpoint connector
    "group_filter_class": "write the patterns as groups and groups_exclude",
    # Dedicated mode and its workers
    "clusters": "it is the block clusters of the topology file",
    "bootstrap_servers": "write it into the cluster under clusters",
    "config_providers": "references ${env:NAME} and ${secret:scope/key} take their place",
    "dedicated_mode_enable_internal_rest": _REST,
    "listeners": _REST,
    "exactly_once_source_support": "write delivery; exactly_once is the default",
    "group_id": "groups of mirrorlake are named by the lake and the flow",
    "scheduled_rebalance_max_delay_ms": "there are no workers that rebalance",
    "plugin_path": "a policy of your own is a Python class; nothing else is plugged in",
}
"""Name of the setting -> why it is not there and what to write instead, as a clause."""

_FAMILIES: Mapping[str, str] = {
    r"offset_syncs_(source|target)_.*": _SYNCS,
    r"transforms_.*|predicates_.*": _SMT,
    r"errors_.*": _ERRORS,
    r"(key|value|header)_converter_.*": _CONVERTER,
    r".*_plugin_version": (
        "nothing is plugged in but a policy, whose version is that of its Python package"
    ),
    r"config_providers_.*": NOT_NEEDED["config_providers"],
    r"(rest|admin_listeners|listeners)_.*": _REST,
    r"(offset|config|status)_storage_.*": "there is no Connect worker; all state is in the lake",
    r"offset_flush_.*": "positions are committed with the records, in the same transaction",
    r"worker_.*|task_.*|topic_creation_.*": "there is no Connect worker",
    r"metrics_.*": NOT_NEEDED["metric_reporters"],
    r"(ssl|sasl)_.*": "write it into the security block of the cluster",
    r"((source|target)_)?(cluster_|consumer_|producer_|admin_)(override_)?.*": (
        "client settings belong to a cluster: write them into its consumer, producer or admin block"
    ),
}
"""The same for keys that come in families: regular expression of the whole name -> why."""


def normal(name: str) -> str:
    """Write a name as mirrorlake does, with `_` for `.` and `-`."""
    return re.sub(r"[.-]", "_", name)


def reason(name: str) -> str | None:
    """Why mirrorlake lacks this setting, a clause; None if MirrorMaker 2 has none either."""
    key = normal(name)
    if key in NOT_NEEDED:
        return NOT_NEEDED[key]
    return next((why for family, why in _FAMILIES.items() if re.fullmatch(family, key)), None)
