"""Where settings of a flow's clients go: `source.consumer.x`, `target.cluster.x`,
`producer.override.x` …"""

from mirrorlake.mm2.importer.client_keys import is_security
from mirrorlake.mm2.importer.draft import Draft, Rank
from mirrorlake.mm2.importer.entries import Entry

#: Settings of connectors whose names only look like a client's.
CONNECTOR_KEYS = ("consumer.poll.timeout.ms", "admin.timeout.ms")
_SYNC_PRODUCER = (
    "it reaches only MirrorMaker 2's producer of offset syncs, which mirrorlake does not have; "
    "the one that writes records takes {better}"
)
_NO_CLIENT = "no client of MirrorMaker 2 reads it"
_ONLY_NAMES = (
    "MirrorMaker 2 takes only addresses and security from here; client settings stand under {role}"
)


def place_flow_key(draft: Draft, flow: str, entry: Entry, key: str, dedicated: bool) -> None:
    """Place a key of a flow, without the flow's prefix: a client's setting, a connector's, or
    neither."""
    source, _, target = flow.partition("->")
    if not (
        _place_client(draft, source, target, entry, key, dedicated=dedicated)
        or draft.place_flow_setting(flow, entry, key)
    ):
        draft.place_known(entry, key)


def _place_client(
    draft: Draft, source: str, target: str, entry: Entry, key: str, *, dedicated: bool
) -> bool:
    """Whether it is a client's setting, and then placed."""
    if key in CONNECTOR_KEYS:
        return False
    sides = {"source": source, "target": target}
    side, _, rest = key.partition(".")
    role, _, name = rest.partition(".")
    if side in sides and role == "cluster":
        return name != "alias" and _place_cluster(draft, sides[side], entry, name)
    if side in sides and role in ("consumer", "admin"):
        return draft.place_client_setting(
            sides[side], role, entry, name, Rank.FLOW if not is_security(name) else Rank.ROLE
        )
    if side in sides and role == "producer":
        return _place_producer(draft, sides[side], entry, name, dedicated=dedicated, target=target)
    if side in ("consumer", "producer", "admin"):
        if role == "override":
            return _place_override(draft, target, entry, side, name)
        if side == "producer":
            return _place_producer(draft, target, entry, rest, dedicated=dedicated, target=target)
        placed = draft.place_client_setting(source, side, entry, rest, Rank.BARE)
        return (
            side == "admin" and draft.place_client_setting(target, side, entry, rest, Rank.BARE)
        ) or placed
    return False


def _place_cluster(draft: Draft, alias: str, entry: Entry, name: str) -> bool:
    if not draft.place_client_setting(alias, None, entry, name, Rank.CLUSTER):
        draft.report.skip(
            entry, _ONLY_NAMES.format(role="source.consumer, producer.override and the like")
        )
    return True


def _place_override(draft: Draft, target: str, entry: Entry, role: str, name: str) -> bool:
    """Connect's override of the worker's clients: only the producer of a source connector
    exists."""
    if role != "producer":
        draft.report.skip(entry, _NO_CLIENT)
        return True
    return draft.place_client_setting(
        target, role, entry, name, Rank.FLOW if not is_security(name) else Rank.ROLE
    )


def _place_producer(
    draft: Draft, alias: str, entry: Entry, name: str, *, dedicated: bool, target: str
) -> bool:
    """A producer's setting of a connector: security helps to reach the cluster, the rest is for
    offset syncs."""
    if is_security(name) or name == "bootstrap.servers":
        return draft.place_client_setting(alias, None, entry, name, Rank.ROLE)
    better = f"{target}.producer.{name}" if dedicated else f"producer.override.{name}"
    draft.report.skip(entry, _SYNC_PRODUCER.format(better=better))
    return True
