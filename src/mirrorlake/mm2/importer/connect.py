"""MirrorMaker 2's connectors in Kafka Connect: JSON, or the properties of a standalone worker."""

from collections.abc import Mapping, Sequence, Set

from mirrorlake.config.flow import Flow
from mirrorlake.config.flow_reasons import normal
from mirrorlake.errors import InputError
from mirrorlake.mm2.importer import flow_keys
from mirrorlake.mm2.importer.draft import Draft, place_flow_key
from mirrorlake.mm2.importer.entries import STATE, Entry

_CONNECTORS = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
#: The settings of a flow without a connector of this kind; the source's `enabled` is the flow's.
_OFF: Mapping[str, Mapping[str, bool]] = {
    "MirrorSourceConnector": {"enabled": False},
    "MirrorCheckpointConnector": {
        "emit_checkpoints_enabled": False,
        "sync_group_offsets_enabled": False,
    },
    "MirrorHeartbeatConnector": {"emit_heartbeats_enabled": False},
}
#: Settings that only some connectors read, by connector: each has its own config, and a setting in
#: another one's has no effect (dedicated mode gives all settings to every connector).
_READ_BY: Mapping[str, frozenset[str]] = {
    "MirrorSourceConnector": frozenset(
        "topics topics.exclude config.properties.exclude refresh.topics.enabled "
        "refresh.topics.interval.seconds sync.topic.configs.enabled "
        "sync.topic.configs.interval.seconds sync.topic.acls.enabled "
        "sync.topic.acls.interval.seconds replication.factor use.defaults.from "
        "heartbeats.replication.enabled emit.offset-syncs.enabled offset-syncs.topic.location "
        "offset-syncs.topic.replication.factor".split()
    ),
    "MirrorCheckpointConnector": frozenset(
        "topics topics.exclude groups groups.exclude refresh.groups.enabled "
        "refresh.groups.interval.seconds emit.checkpoints.enabled "
        "emit.checkpoints.interval.seconds sync.group.offsets.enabled "
        "sync.group.offsets.interval.seconds checkpoints.topic.replication.factor "
        "emit.offset-syncs.enabled offset-syncs.topic.location".split()
    ),
    "MirrorHeartbeatConnector": frozenset(
        "emit.heartbeats.enabled emit.heartbeats.interval.seconds "
        "heartbeats.topic.replication.factor".split()
    ),
}
_ELSEWHERE = "only the config of a {readers} counts for it"
_ONE_LIST = (
    "the MirrorSourceConnector of flow {flow} has the default, which is what is mirrored, and a "
    "flow has one list for topics and groups; leave groups out by groups and groups_exclude"
)
_ALIAS = "source.cluster.alias"
_WORKER = (
    "flow {flow}: a connector's records go to the cluster of its Connect worker; mirrorlake "
    "writes to target.cluster.bootstrap.servers, so check that they are the same"
)


def is_mirror(settings: Mapping[str, Entry]) -> bool:
    """Whether the connector is one of MirrorMaker 2's."""
    return _class_of(settings) in _CONNECTORS


def kind_of(settings: Mapping[str, Entry]) -> str:
    """The kind of a connector; raises InputError for a class that is not one of MirrorMaker 2's."""
    kind = _class_of(settings)
    if kind not in _CONNECTORS:
        raise settings["connector.class"].wrong(
            f"is none of MirrorMaker 2's connectors, {', '.join(_CONNECTORS)}"
        )
    return kind


def _class_of(settings: Mapping[str, Entry]) -> str:
    name = settings["connector.class"].value.rpartition(".")[2]
    return name if name.endswith("Connector") else f"{name}Connector"  # Connect accepts both


def read_connectors(connectors: Sequence[Mapping[str, Entry]], draft: Draft) -> None:
    """Place every entry of all connectors; those of one source and target make one flow.

    Raises InputError if a connector does not name its ends, or two contradict each other.
    """
    kinds_by_flow: dict[str, set[str]] = {}
    kept = _keep_names(connectors, draft)
    ordered = sorted(connectors, key=lambda settings: _CONNECTORS.index(kind_of(settings)))
    for settings in ordered:
        unnamed = kept and _unnamed(settings)
        kind, flow = kind_of(settings), _flow(settings, unnamed)
        for alias in flow.split("->"):
            draft.add_cluster(alias)
        draft.add_flow(flow)
        if kind in kinds_by_flow.setdefault(flow, set()):
            raise settings["connector.class"].wrong(
                f"is the second {kind} of flow {flow}; mirrorlake has one flow for both"
            )
        kinds_by_flow[flow].add(kind)
        for entry in sorted(settings.values(), key=lambda entry: entry.key == "enabled"):
            # `enabled` comes last, so that it decides
            if unnamed and _says_names_stay(entry):
                draft.set_flow(flow, {"policy": "identity"}, entry)
            else:
                _place(draft, flow, kind, entry, kinds_by_flow[flow])
    for flow, kinds in kinds_by_flow.items():
        _complete(draft, flow, kinds)


def _unnamed(settings: Mapping[str, Entry]) -> bool:
    return _ALIAS in settings and not settings[_ALIAS].value


def _says_names_stay(entry: Entry) -> bool:
    """Whether the entry, with an empty alias, is one that keeps names, as the default policy is."""
    if entry.key == "replication.policy.class":
        return entry.value.endswith((".DefaultReplicationPolicy", ".IdentityReplicationPolicy"))
    return entry.key == "replication.policy.separator" and not entry.value


def _keep_names(connectors: Sequence[Mapping[str, Entry]], draft: Draft) -> bool:
    """Whether names stay as before Kafka's identity policy (KIP-690): no alias, no separator."""
    unnamed = [one for one in connectors if _unnamed(one)]
    signs = [entry for one in unnamed for entry in one.values() if _says_names_stay(entry)]
    if not any("Default" not in entry.value for entry in signs):
        return False
    draft.report.note(
        f"{unnamed[0][_ALIAS].at} is empty, by which names stay: the flow has policy: identity, "
        "and source and target are our names for the clusters, which you may change in the whole "
        "file before the first run; heartbeats arrive as source.heartbeats"
    )
    return True


def _flow(settings: Mapping[str, Entry], unnamed: bool) -> str:
    connector = settings["connector.class"]
    source, target = settings.get(_ALIAS), settings.get("target.cluster.alias")
    if not unnamed and (source is None or not source.value):
        raise connector.wrong(
            "comes without source.cluster.alias, the name of the cluster that it reads"
        )
    ends = [(source, "source"), (target, "target")]
    return "->".join(entry.value if entry and entry.value else name for entry, name in ends)


def _place(draft: Draft, flow: str, kind: str, entry: Entry, kinds: Set[str]) -> None:
    """Place a connector's entry; `kinds` are the flow's connectors so far, the source's first."""
    source, _, target = flow.partition("->")
    if entry.key in ("source.cluster.alias", "target.cluster.alias"):
        alias = source if entry.key.startswith("source") else target
        draft.report.carry(entry, f"clusters.{alias}")
    elif entry.key == STATE:
        _place_switch(draft, flow, kind, entry, "paused")
    elif entry.key.startswith("("):
        draft.report.skip(entry, "it is what Connect's REST interface adds to an answer")
    elif entry.key == "enabled":
        _place_switch(draft, flow, kind, entry, "enabled")
    elif why := _no_effect(kind, entry):
        draft.report.skip(entry, why)
    elif kind != "MirrorSourceConnector" and flow_keys.changes_records(entry.key):
        draft.report.refuse(entry, flow_keys.TRANSFORMS)  # no record of the topics passes there
    elif "MirrorSourceConnector" in kinds - {kind} and _narrows_records(draft, flow, entry):
        draft.report.refuse(entry, _ONE_LIST.format(flow=flow))
    else:
        place_flow_key(draft, flow, entry, entry.key, dedicated=False)


def _no_effect(kind: str, entry: Entry) -> str:
    """Why a connector's setting has no effect; empty if the connector reads it."""
    key = flow_keys.RENAMED.get(entry.key, entry.key)
    readers = [reader for reader, keys in _READ_BY.items() if key in keys]
    if not readers or kind in readers:
        return ""
    return _ELSEWHERE.format(readers=" or ".join(readers))


def _narrows_records(draft: Draft, flow: str, entry: Entry) -> bool:
    """Whether the entry is a topic list that only groups would follow: the source connector has the
    default, and this list differs."""
    key = flow_keys.RENAMED.get(entry.key, entry.key)
    name = normal(key)
    if key not in ("topics", "topics.exclude") or name in draft.flows[flow]:
        return False
    outcome = flow_keys.translate(entry, key)
    return outcome is None or outcome.fields != {name: list(getattr(Flow(), name))}


def _place_switch(draft: Draft, flow: str, kind: str, entry: Entry, name: str) -> None:
    """Place a switch (`enabled`, or paused and stopped states, which keep positions) of a
    connector. For the source connector it sets `name` of the flow."""
    works = entry.value == "running" if name == "paused" else flow_keys.flag(entry)
    if kind == "MirrorSourceConnector" and works == (name == "enabled"):
        draft.set_flow(flow, {name: True}, entry)
    elif works:
        draft.report.skip(entry, "it is the default")
    else:
        draft.set_flow(flow, _OFF[kind])
        for name in _OFF[kind]:
            draft.report.carry(entry, f"flows.{flow}.{name}")


def _complete(draft: Draft, flow: str, kinds: set[str]) -> None:
    source, _, target = flow.partition("->")
    for side, alias in (("source", source), ("target", target)):
        if not draft.has_address(alias):
            raise InputError(
                f"no connector of flow {flow} gives {side}.cluster.bootstrap.servers, the address "
                f"of {alias}"
            )
    if "MirrorSourceConnector" in kinds:
        draft.report.note(_WORKER.format(flow=flow))
    else:
        draft.set_flow(flow, _OFF["MirrorSourceConnector"])
        draft.report.note(
            f"flow {flow} is disabled: no MirrorSourceConnector mirrors it; enable it to mirror "
            "topics"
        )
    for kind in _CONNECTORS[1:]:
        if kind not in kinds and "MirrorSourceConnector" in kinds:
            names = " and ".join(_OFF[kind])
            draft.report.note(
                f"flow {flow} came without a {kind}; mirrorlake does its work unless {names} is "
                "false"
            )
