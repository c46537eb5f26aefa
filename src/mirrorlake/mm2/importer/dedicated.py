"""MirrorMaker 2's dedicated mode: `mm2.properties` (docs/mm2.md, "Dedicated mode")."""

from collections.abc import Mapping
from itertools import permutations

from mirrorlake.config.fields import names_of
from mirrorlake.errors import InputError
from mirrorlake.mm2.importer import client_keys, flow_keys
from mirrorlake.mm2.importer.draft import CONNECTOR_KEYS, Draft, Rank, place_flow_key
from mirrorlake.mm2.importer.entries import Entry

_ROLES = ("consumer", "producer", "admin")
_EXACTLY_ONCE = "exactly.once.source.support"
_DROPPED = (
    "MirrorMaker 2 passes no client settings on from the top of the file; under a cluster's "
    "alias they count"
)
#: A setting of a filter alone, which is in no connector's ConfigDef (checked with the classes of
#: 4.1.1): only those are passed on from the top.
_OF_FILTER = "use.defaults.from"
_ONLY_OF_FLOWS = (
    "MirrorMaker 2 passes it on only under source->target, and goes by its default, target"
)
_MISPLACED = (
    "MirrorMaker 2 ignores settings of flows under a cluster's alias; write it at the top "
    "or under source->target"
)
_NO_SUCH_FLOW = "MirrorMaker 2 ignores it: clusters lists only {aliases}"
_SPACES = (
    "MirrorMaker 2 reads no flow here, because a blank ends a key; write source->target "
    "without blanks"
)


def read_dedicated(settings: Mapping[str, Entry], draft: Draft) -> None:
    """Place every entry of the file. Raises InputError if the file describes no flow."""
    clusters = settings["clusters"]
    aliases = [str(alias) for alias in names_of(clusters.value)]  # type: ignore[attr-defined]
    if len(set(aliases)) < 2:
        raise clusters.wrong("must list two clusters or more, with commas between them")
    flows = _flows(settings, list(dict.fromkeys(aliases)))
    if not flows:
        for entry in settings.values():
            if entry.value.startswith("->"):
                raise entry.wrong(f"is all of a key: {_SPACES}")
        raise clusters.wrong(
            "is all there is: no key like A->B.enabled = true names a flow between two of them"
        )
    for alias in aliases:
        draft.add_cluster(alias)
        draft.report.carry(clusters, f"clusters.{alias}")
    for flow, runs in flows.items():
        draft.add_flow(flow)
        draft.set_flow(flow, {"enabled": runs})
    for entry in settings.values():
        _place(draft, entry, aliases, flows)
    for alias in aliases:
        if not draft.has_address(alias):
            raise InputError(
                f"{clusters.file} gives no {alias}.bootstrap.servers, the address of a cluster "
                "that clusters lists"
            )
    for flow, runs in flows.items():
        if not runs:
            draft.report.note(
                f"flow {flow} is disabled, as MirrorMaker 2 takes it to be without {flow}.enabled "
                "= true"
            )


def _flows(settings: Mapping[str, Entry], aliases: list[str]) -> dict[str, bool]:
    """Flows that the file names or enables, and whether each runs (MirrorMakerConfig.clusterPairs).

    `A->B.enabled` or `enabled` enables a connector; but it runs only in a herder, which a pair has
    if `A->B.enabled` is true or the pair emits heartbeats.
    """
    top = settings.get("enabled")
    enabled = {}
    for source, target in permutations(aliases, 2):
        prefix = f"{source}->{target}."
        own, beats = settings.get(f"{prefix}enabled"), settings.get("emit.heartbeats.enabled")
        beats = settings.get(f"{prefix}emit.heartbeats.enabled", beats)
        wanted = own or top
        herder = (own is not None and flow_keys.flag(own)) or beats is None or flow_keys.flag(beats)
        runs = wanted is not None and flow_keys.flag(wanted) and herder
        if runs or any(key.startswith(prefix) for key in settings):
            enabled[prefix[:-1]] = runs
    return enabled


def _place(draft: Draft, entry: Entry, aliases: list[str], flows: Mapping[str, bool]) -> None:
    key = entry.key
    # the longest one: a dot may be part of an alias
    flow = max((name for name in flows if key.startswith(f"{name}.")), key=len, default=None)
    if key == "clusters":
        return
    if flow is not None:
        rest = key.removeprefix(f"{flow}.")
        if rest == "enabled":
            draft.report.carry(entry, f"flows.{flow}.enabled")
        else:
            place_flow_key(draft, flow, entry, rest, dedicated=True)
        return
    alias = max((name for name in aliases if key.startswith(f"{name}.")), key=len, default=None)
    if alias is not None:
        _place_cluster_key(draft, entry, alias, key.removeprefix(f"{alias}."), flows)
    elif "->" in key:
        draft.report.refuse(entry, _NO_SUCH_FLOW.format(aliases=", ".join(aliases)))
    elif entry.value.startswith("->"):
        draft.report.refuse(entry, _SPACES)
    else:
        _place_top_key(draft, entry, aliases, flows)


def _place_cluster_key(
    draft: Draft, entry: Entry, alias: str, rest: str, flows: Mapping[str, bool]
) -> None:
    role, _, name = rest.partition(".")
    if role in _ROLES:
        draft.place_client_setting(alias, role, entry, name, Rank.ROLE)
    elif rest == _EXACTLY_ONCE:
        written = [flow for flow in flows if flow.endswith(f"->{alias}")]
        for flow in written:
            draft.place_flow_setting(flow, entry, rest)
        if not written:
            draft.report.skip(entry, f"no flow writes to {alias}")
    elif draft.place_client_setting(alias, None, entry, rest, Rank.CLUSTER):
        return
    elif flow_keys.RENAMED.get(rest, rest) in flow_keys.CARRIED:
        draft.report.skip(entry, _MISPLACED)
    else:
        draft.place_known(entry, rest)


def _place_top_key(
    draft: Draft, entry: Entry, aliases: list[str], flows: Mapping[str, bool]
) -> None:
    key = entry.key
    if key == "enabled":
        for flow in flows:
            draft.report.carry(entry, f"flows.{flow}.enabled")
    elif key == "bootstrap.servers" or client_keys.is_security(key):
        for alias in aliases:
            draft.place_client_setting(alias, None, entry, key, Rank.TOP)
    elif key.partition(".")[0] in _ROLES and key not in CONNECTOR_KEYS:
        draft.report.skip(entry, _DROPPED)
    elif key == _OF_FILTER:
        draft.report.skip(entry, _ONLY_OF_FLOWS)
    elif key.startswith("config.providers"):
        draft.report.refuse(
            entry,
            "mirrorlake reads ${env:NAME} and ${secret:scope/key}; the notes say what to write for "
            "each reference",
        )
    elif not draft.place_flow_setting(None, entry, key):
        draft.place_known(entry, key)
