"""MirrorMaker 2's connectors as Kafka Connect runs them: JSON, or the properties of a standalone
worker."""

from collections.abc import Mapping, Sequence

from mirrorlake.errors import InputError
from mirrorlake.mm2.importer import flow_keys
from mirrorlake.mm2.importer.draft import Draft
from mirrorlake.mm2.importer.entries import Entry
from mirrorlake.mm2.importer.sides import place_flow_key

_CONNECTORS = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
#: What a flow does without the connector of this kind; `enabled` of the source connector is the
#: flow's.
_OFF: Mapping[str, Mapping[str, bool]] = {
    "MirrorSourceConnector": {"enabled": False},
    "MirrorCheckpointConnector": {
        "emit_checkpoints_enabled": False,
        "sync_group_offsets_enabled": False,
    },
    "MirrorHeartbeatConnector": {"emit_heartbeats_enabled": False},
}
_WORKER = (
    "flow {flow}: a connector's records go to the cluster of its Connect worker; mirrorlake "
    "writes to target.cluster.bootstrap.servers, so check that they are the same"
)


def kind_of(settings: Mapping[str, Entry]) -> str:
    """Name the connector; raises InputError for a class that is none of MirrorMaker 2's."""
    entry = settings["connector.class"]
    kind = entry.value.rpartition(".")[2]
    kind = kind if kind.endswith("Connector") else f"{kind}Connector"  # Connect takes either
    if kind not in _CONNECTORS:
        raise entry.wrong(f"is none of MirrorMaker 2's connectors, {', '.join(_CONNECTORS)}")
    return kind


def read_connectors(connectors: Sequence[Mapping[str, Entry]], draft: Draft) -> None:
    """Place every entry of all connectors; those of one source and target make one flow.

    Raises InputError if a connector does not name its ends, or two contradict each other.
    """
    kinds_by_flow: dict[str, set[str]] = {}
    ordered = sorted(connectors, key=lambda settings: _CONNECTORS.index(kind_of(settings)))
    for settings in ordered:
        kind, flow = kind_of(settings), _flow(settings)
        for alias in flow.split("->"):
            draft.add_cluster(alias)
        draft.add_flow(flow)
        if kind in kinds_by_flow.setdefault(flow, set()):
            raise settings["connector.class"].wrong(
                f"is the second {kind} of flow {flow}; mirrorlake has one flow for both"
            )
        kinds_by_flow[flow].add(kind)
        for entry in sorted(settings.values(), key=lambda entry: entry.key == "enabled"):
            # that one has the last word
            _place(draft, flow, kind, entry)
    for flow, kinds in kinds_by_flow.items():
        _complete(draft, flow, kinds)


def _flow(settings: Mapping[str, Entry]) -> str:
    connector = settings["connector.class"]
    source, target = settings.get("source.cluster.alias"), settings.get("target.cluster.alias")
    if source is None or not source.value:
        raise connector.wrong(
            "comes without source.cluster.alias, the name of the cluster that it reads"
        )
    return f"{source.value}->{target.value if target and target.value else 'target'}"


def _place(draft: Draft, flow: str, kind: str, entry: Entry) -> None:
    source, _, target = flow.partition("->")
    if entry.key in ("source.cluster.alias", "target.cluster.alias"):
        alias = source if entry.key.startswith("source") else target
        draft.report.carry(entry, f"clusters.{alias}")
    elif entry.key.startswith("("):
        draft.report.skip(entry, "it is what Connect's REST interface adds to an answer")
    elif entry.key == "enabled":
        _place_enabled(draft, flow, kind, entry)
    else:
        place_flow_key(draft, flow, entry, entry.key, dedicated=False)


def _place_enabled(draft: Draft, flow: str, kind: str, entry: Entry) -> None:
    if not flow_keys.flag(entry):
        draft.set_flow(flow, _OFF[kind])
        for name in _OFF[kind]:
            draft.report.carry(entry, f"flows.{flow}.{name}")
    elif kind == "MirrorSourceConnector":
        draft.set_flow(flow, {"enabled": True}, entry)
    else:
        draft.report.skip(entry, "it is the default")


def _complete(draft: Draft, flow: str, kinds: set[str]) -> None:
    source, _, target = flow.partition("->")
    for side, alias in (("source", source), ("target", target)):
        if not draft.has(alias, "bootstrap.servers"):
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
