"""The topology while files are read: the offers for each setting of clusters and flows, which offer
wins, and where client settings of a flow go: `source.consumer.x`, `producer.override.x` …"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from mirrorlake.config.flow_reasons import reason
from mirrorlake.mm2.importer import client_keys, flow_keys
from mirrorlake.mm2.importer.client_keys import is_security
from mirrorlake.mm2.importer.entries import Entry, SettingOutcome, Value
from mirrorlake.mm2.importer.report import Report
from mirrorlake.mm2.importer.secrets import Secrets
from mirrorlake.mm2.importer.security import SecurityReader

_NO_CLIENT = (
    "MirrorMaker 2 passes it to no client from here; write it into a consumer, producer "
    "or admin block"
)
_HEADING = "it is a heading, which Kafka itself reads as a key without a value and leaves alone"


class Rank(IntEnum):
    """Precedence among settings of a cluster: the lowest wins. BARE is `consumer.x` of a flow,
    overridden by `source.consumer.x`, and by `A.consumer.x`, which holds for all flows from A."""

    CLUSTER = 0
    FLOW = 1
    ROLE = 2
    BARE = 3
    TOP = 4


@dataclass
class _Offer:
    rank: Rank
    entry: Entry
    outcome: SettingOutcome = field(default_factory=SettingOutcome)


#: Offers for a cluster by setting: `bootstrap.servers`, a security setting, or `role/name of a
#: client setting`.
_Offers = dict[str, list[_Offer]]


class Draft:
    """Collects clusters and flows. `place_*` take one entry; `document` makes the topology."""

    def __init__(self, report: Report, secrets: Secrets) -> None:
        self.report, self._secrets = report, secrets
        self._clusters: dict[str, _Offers] = {}
        self._defaults: dict[str, Value] = {}
        self._flows: dict[str, dict[str, Value]] = {}
        self._isolation: dict[str, set[str]] = {}
        self._given: dict[tuple[str | None, str], Entry] = {}
        #: Clusters whose security block does not say how to log in.
        self.incomplete: set[str] = set()

    @property
    def flows(self) -> Mapping[str, Mapping[str, Value]]:
        """The flows so far, by name."""
        return self._flows

    def add_cluster(self, alias: str) -> None:
        """Add a cluster; the document keeps this order."""
        self._clusters.setdefault(alias, {})

    def add_flow(self, name: str) -> None:
        """Add a flow; the document keeps this order."""
        self._flows.setdefault(name, {})

    def set_flow(
        self, flow: str | None, values: Mapping[str, Value], entry: Entry | None = None
    ) -> None:
        """Set a flow's fields, or (None) the defaults'. Raises InputError if entries contradict."""
        place = self._defaults if flow is None else self._flows[flow]
        for name, value in values.items():
            before = self._given.get((flow, name))
            if entry is not None and before is not None and flow_keys.differs(place[name], value):
                raise entry.wrong(f"contradicts {before.at}; one flow takes one value")
            place[name] = value
            if entry is not None:
                self._given[flow, name] = before or entry
                self.report.carry(
                    entry, f"{'defaults' if flow is None else f'flows.{flow}'}.{name}"
                )

    def place_flow_setting(self, flow: str | None, entry: Entry, key: str) -> bool:
        """Place a connector's setting; return False if `key` is not one."""
        outcome = flow_keys.translate(entry, key)
        if outcome is None:
            return False
        self.place_outcome(flow, outcome, entry)
        return True

    def place_outcome(self, flow: str | None, outcome: SettingOutcome, entry: Entry) -> None:
        """Place the outcome of a setting of a flow, or of the defaults for None."""
        self._place(outcome, entry)
        self.set_flow(flow, outcome.fields, entry)

    def place_client_setting(
        self, alias: str, role: str | None, entry: Entry, name: str, rank: Rank
    ) -> bool:
        """Place a client setting of a cluster; `role` None: of all clients. False if unknown."""
        offers = self._clusters[alias]
        name = "bootstrap.servers" if name == "metadata.broker.list" else name
        if name == "bootstrap.servers" or client_keys.is_security(name):
            offers.setdefault(name, []).append(_Offer(rank, entry))
            return True
        if role is None:
            return False
        if (role, name) == ("consumer", "isolation.level"):
            self._isolation.setdefault(alias, set()).add(entry.value)
        outcome = client_keys.translate(entry, role, name)
        if outcome is None:
            self.report.refuse(entry, f"it is no setting that a {role} of mirrorlake takes over")
            return True
        self._place(outcome, entry)
        for field_name in outcome.fields:
            offers.setdefault(f"{role}/{field_name}", []).append(_Offer(rank, entry, outcome))
        return True

    def place_known(self, entry: Entry, key: str) -> None:
        """Place a setting that is left: not needed if MirrorMaker 2 has it, else unknown."""
        why = reason(key) or client_keys.NOT_NEEDED.get(key)
        if why is None and key in client_keys.CARRIED["consumer"] | client_keys.CARRIED["producer"]:
            why = _NO_CLIENT
        if why:
            self.report.skip(entry, why)
        elif key.startswith("["):
            self.report.skip(entry, _HEADING)

    def document(self) -> dict[str, Any]:
        """The topology. Raises InputError if a cluster has no address, or entries contradict."""
        clusters = {alias: self._cluster(alias, offers) for alias, offers in self._clusters.items()}
        document: dict[str, Any] = {"clusters": clusters, "lake": {"path": "./lake"}}
        if self._defaults:
            document["defaults"] = self._defaults
        return {**document, "flows": self._flows}

    def has_address(self, alias: str) -> bool:
        """Whether a cluster was offered an address."""
        return "bootstrap.servers" in self._clusters[alias]

    def committed_only(self) -> frozenset[str]:
        """The clusters that MirrorMaker read with isolation.level = read_committed, as we do."""
        return frozenset(
            alias for alias, levels in self._isolation.items() if levels == {"read_committed"}
        )

    def _place(self, outcome: SettingOutcome, entry: Entry) -> None:
        if outcome.not_needed:
            self.report.skip(entry, outcome.not_needed)
        if outcome.not_supported:
            self.report.refuse(entry, outcome.not_supported)
        for note in outcome.notes:
            self.report.note(note)

    def _cluster(self, alias: str, by_name: _Offers) -> dict[str, Any]:
        chosen = {name: self._choose(alias, offers) for name, offers in by_name.items()}
        bootstrap = chosen["bootstrap.servers"].entry
        self.report.carry(bootstrap, f"clusters.{alias}.bootstrap_servers")
        servers = self._secrets.show(bootstrap, bootstrap.value, alias, "bootstrap_servers")
        content: dict[str, Any] = {"bootstrap_servers": servers}
        settings = {
            name: offer.entry for name, offer in chosen.items() if client_keys.is_security(name)
        }
        reader = SecurityReader(alias, settings, self._secrets, self.report)
        security = reader.block()
        if not reader.is_complete:
            self.incomplete.add(alias)
        if security is not None:
            content["security"] = security
        for name, offer in chosen.items():
            role, slash, key = name.partition("/")
            if slash:
                content.setdefault(role, {})[key] = offer.outcome.fields[key]
                self.report.carry(offer.entry, f"clusters.{alias}.{role}.{key}")
        return content

    def _choose(self, alias: str, offers: list[_Offer]) -> _Offer:
        """Choose the offer with the lowest rank, and report the others."""
        chosen = min(offers, key=lambda offer: offer.rank)
        for offer in offers:
            if offer is chosen:
                continue
            if offer.entry.value == chosen.entry.value:
                self.report.follow(offer.entry, chosen.entry)
            elif offer.rank == Rank.TOP:
                self.report.skip(offer.entry, f"cluster {alias} has its own, {chosen.entry.at}")
            elif offer.rank == chosen.rank == Rank.CLUSTER:
                raise offer.entry.wrong(
                    f"contradicts {chosen.entry.at}; cluster {alias} takes one value"
                )
            else:
                self.report.refuse(
                    offer.entry,
                    f"cluster {alias} takes one value for all flows and clients, and "
                    f"{chosen.entry.at} gave it",
                )
        return chosen


#: Connector settings whose names only look like a client's.
CONNECTOR_KEYS = ("consumer.poll.timeout.ms", "admin.timeout.ms")
_SYNC_PRODUCER = (
    "it reaches only MirrorMaker 2's producer of offset syncs, which mirrorlake does not have; "
    "the one that writes records takes {better}"
)
_UNREAD = "no client of MirrorMaker 2 reads it"
_ONLY_NAMES = (
    "MirrorMaker 2 takes only addresses and security from here; client settings stand under {role}"
)


def place_flow_key(draft: Draft, flow: str, entry: Entry, key: str, dedicated: bool) -> None:
    """Place a flow's key without its prefix: a client's setting, a connector's, or neither."""
    source, _, target = flow.partition("->")
    if not (
        _place_client(draft, source, target, entry, key, dedicated=dedicated)
        or draft.place_flow_setting(flow, entry, key)
    ):
        draft.place_known(entry, key)


def _place_client(
    draft: Draft, source: str, target: str, entry: Entry, key: str, *, dedicated: bool
) -> bool:
    """Place the entry if it is a client setting; return whether it is."""
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
    """Connect's override of a worker's clients: only a source connector's producer exists."""
    if role != "producer":
        draft.report.skip(entry, _UNREAD)
        return True
    return draft.place_client_setting(
        target, role, entry, name, Rank.FLOW if not is_security(name) else Rank.ROLE
    )


def _place_producer(
    draft: Draft, alias: str, entry: Entry, name: str, *, dedicated: bool, target: str
) -> bool:
    """Place a connector's producer setting: security for the cluster, the rest for offset syncs."""
    if is_security(name) or name == "bootstrap.servers":
        return draft.place_client_setting(alias, None, entry, name, Rank.ROLE)
    better = f"{target}.producer.{name}" if dedicated else f"producer.override.{name}"
    draft.report.skip(entry, _SYNC_PRODUCER.format(better=better))
    return True
