"""Reads Strimzi's resource KafkaMirrorMaker2, v1beta2 and v1, as its operator's connectors.

The rules are those of KafkaMirrorMaker2Connectors in github.com/strimzi/strimzi-kafka-operator: a
pattern is passed on as it is, so several are joined by commas, or within one expression by `|`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mirrorlake.config.flow_reasons import reason
from mirrorlake.errors import InputError
from mirrorlake.mm2.importer import flow_keys
from mirrorlake.mm2.importer.client_keys import is_security
from mirrorlake.mm2.importer.entries import STATE, Entry, SourceFile
from mirrorlake.mm2.importer.report import UNKNOWN, Report
from mirrorlake.mm2.importer.resource import Field, kind_of, read_resources
from mirrorlake.mm2.importer.strimzi_security import SECURITY_FIELDS, security_entries

_KIND = re.compile(rb'(?:^[ \t-]*|[{,]\s*)"?kind"?[ \t]*:[ \t]*["\']?(\w+)', re.M)
_KINDS = ("KafkaMirrorMaker2", "KafkaMirrorMaker", "KafkaConnector", "KafkaConnect")
_MAKER = "KafkaMirrorMaker2"
_OTHER = (
    "{file} is a resource of Strimzi (kind {kind}), which import does not read; it reads what that "
    "runs: save the answer of GET /connectors?expand=info from port 8083 of its pod as a .json file"
)
_CLASS = "org.apache.kafka.connect.mirror.Mirror"
_CONNECTORS = {
    "sourceConnector": "SourceConnector",
    "checkpointConnector": "CheckpointConnector",
    "heartbeatConnector": "HeartbeatConnector",
}
#: Fields of a mirror and their connector keys; of two fields for one key the first wins.
_PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "topicsBlacklistPattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
_WORKER = "there is no Connect worker; all state is in the lake"
_POD = "it is about Strimzi's pods; ops/kubernetes has what mirrorlake's pod needs"
_RACK = (
    "the rack is that of a pod's node: write consumer: {client.rack: …} into the source's cluster"
)
_NOT_NEEDED = {
    **dict.fromkeys(
        "version replicas image resources livenessProbe readinessProbe jvmOptions jmxOptions "
        "logging clientRackInitImage template".split(),
        _POD,
    ),
    "metricsConfig": "mirrorlake has metrics of its own: run --metrics (docs/metrics.md)",
    "connectCluster": "a flow writes to its target, and there is no Connect worker",
}
_NOT_SUPPORTED = {
    "tracing": "interceptors are Java classes; mirrorlake copies records as they are",
    "rack": _RACK,
    "externalConfiguration": (
        "references to these variables and files are not read: the notes have what to set or mount"
    ),
}
_CONNECTOR_NOT_NEEDED = {
    "autoRestart": "run tries again by itself, and an incident says what it waits for",
    "version": "nothing is plugged in",
    "listOffsets": "mirrorlake has its positions in the lake",
    "alterOffsets": "mirrorlake has its positions in the lake",
}
_TARGET_NOT_NEEDED = ("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic")
#: Settings of a Connect worker that apply to all its connectors.
_OF_WORKERS = (
    "exactly.once.source.support", "key.converter", "value.converter", "header.converter"
)  # fmt: skip
_CLUSTER_FIELDS = ("alias", "bootstrapServers", "config", *SECURITY_FIELDS)


@dataclass
class Resources:
    """The connectors of a file's resources, each as its entries, and fields outside of them:
    without a counterpart, or with the meaning of another entry."""

    connectors: list[list[Entry]] = field(default_factory=list)
    not_needed: list[tuple[Entry, str]] = field(default_factory=list)
    not_supported: list[tuple[Entry, str]] = field(default_factory=list)
    follows: list[tuple[Entry, Entry]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def entries(self) -> list[Entry]:
        """Every entry that the report must cover, in the order of the file."""
        aside = [*self.not_needed, *self.not_supported, *self.follows]
        every = [entry for one in self.connectors for entry in one] + [entry for entry, _ in aside]
        return sorted(every, key=lambda entry: entry.line or 0)

    def tell(self, report: Report) -> None:
        """Report the fields that are in no connector."""
        for entry, why in self.not_needed:
            report.skip(entry, why)
        for entry, why in self.not_supported:
            report.refuse(entry, why)
        for entry, other in self.follows:
            report.follow(entry, other)
        for note in self.notes:
            report.note(note)

    def leave(self, part: Field, why: str) -> None:
        """Record why nothing is lost without a field."""
        self.not_needed.append((part.entry(part.path, ""), why))

    def refuse(self, part: Field, why: str) -> None:
        """Record why a field's meaning is lost, and what to do."""
        self.not_supported.append((part.entry(part.path, ""), why))


def is_resource(file: SourceFile) -> bool:
    """Whether a file contains a Strimzi resource that runs MirrorMaker, or might."""
    kinds = (match[1].decode() for match in _KIND.finditer(file.data))
    return b"apiVersion" in file.data and any(kind in _KINDS for kind in kinds)


def read_strimzi(file: SourceFile) -> Resources:
    """Read a file's resources. Raises InputError for a file without a KafkaMirrorMaker2, and for a
    resource that Strimzi itself would not accept."""
    resources, read = read_resources(file), Resources()
    kinds = [kind_of(one) for one in resources]
    if _MAKER not in kinds:
        kind = next((kind for kind in kinds if kind in _KINDS), "none that is known")
        raise InputError(_OTHER.format(file=file.name, kind=kind))
    for kind, resource in zip(kinds, resources, strict=True):
        if kind == _MAKER:
            _read_maker(resource, read)
        else:
            read.notes.append(
                f"{file.name}, line {resource.line}: a resource of kind {kind or 'unknown'} is "
                "left alone; of a file of resources import reads KafkaMirrorMaker2"
            )
    if not read.connectors:
        raise InputError(f"{file.name}: no mirror of it has a connector, so Strimzi runs nothing")
    return read


def _read_maker(resource: Field, read: Resources) -> None:
    spec = resource.part("spec")
    mirrors = spec.part("mirrors") if spec is not None else None
    if spec is None or mirrors is None:
        raise resource.wrong("has no spec.mirrors, so it says nothing that could be imported")
    namespace = resource.part("metadata", "namespace")
    reader = _Maker(spec, namespace.text() if namespace is not None else "", read)
    for mirror in mirrors.each():
        reader.read_mirror(mirror)
    reader.finish()


class _Maker:
    """Reads one resource; `namespace` is where its Secrets are, empty if the file does not say."""

    def __init__(self, spec: Field, namespace: str, read: Resources) -> None:
        self._spec, self._namespace, self._read = spec, namespace, read
        listed = spec.part("clusters")
        self._clusters = {
            cluster.needed("alias").text(): cluster for cluster in (listed.each() if listed else ())
        }
        self._used: set[str] = set()

    def read_mirror(self, mirror: Field) -> None:
        """Add the mirror's connectors."""
        parts = mirror.parts()
        if not parts.keys() & _CONNECTORS.keys():
            self._read.leave(mirror, "it has no connector, so Strimzi runs nothing for it")
            return
        source = self._end(mirror, "source", "sourceCluster", parts.get("source"))
        target = self._end(mirror, "target", "targetCluster", self._spec.part("target"))
        shared = self._patterns(parts)
        for name, kind in _CONNECTORS.items():
            if name in parts:
                self._read_connector(parts[name], kind, [*target, *source], shared)
        for name, part in parts.items():
            if name not in (*_CONNECTORS, *_PATTERNS, "source", "sourceCluster", "targetCluster"):
                self._read.refuse(part, UNKNOWN)

    def finish(self) -> None:
        """Report the fields that belong to no mirror."""
        for alias, cluster in self._clusters.items():
            if alias not in self._used:
                self._read.leave(cluster, "no mirror reads it or writes to it")
        for name, part in self._spec.parts().items():
            if name in _NOT_NEEDED:
                self._read.leave(part, _NOT_NEEDED[name])
            elif name not in ("clusters", "target", "mirrors"):
                self._read.refuse(part, _NOT_SUPPORTED.get(name, UNKNOWN))

    def _end(self, mirror: Field, side: str, name: str, cluster: Field | None) -> list[Entry]:
        """The entries of a mirror's source or target; `cluster` is given since v1."""
        if cluster is None:
            alias = mirror.needed(name)
            if (cluster := self._clusters.get(alias.text())) is None:
                raise alias.wrong("names none of spec.clusters")
            self._used.add(alias.text())
            named = cluster.needed("alias").entry(f"{side}.cluster.alias")
            self._read.follows.append((alias.entry(alias.path, ""), named))
        entries = [
            cluster.needed(name).entry(f"{side}.cluster.{key}")
            for name, key in (("alias", "alias"), ("bootstrapServers", "bootstrap.servers"))
        ]
        secured = security_entries(cluster, self._namespace)
        for note in secured.refused:
            self._read.refuse(*note)
        prefix = f"{side}.cluster."
        moved = {entry: replace(entry, key=f"{prefix}{entry.key}") for entry in secured.entries}
        self._read.follows += [(part.entry(part.path, ""), moved[to]) for part, to in secured.same]
        entries += moved.values()
        for name, part in cluster.parts().items():
            if name in _TARGET_NOT_NEEDED:
                self._read.leave(part, _WORKER)
            elif name not in _CLUSTER_FIELDS:
                self._read.refuse(part, UNKNOWN)
        config = cluster.part("config")
        for key, part in (config.parts() if config else {}).items():
            entries += self._cluster_config(side, key, part)
        return entries

    def _cluster_config(self, side: str, key: str, part: Field) -> list[Entry]:
        """A connector's entries for a key of a cluster's config: the target's is the worker's."""
        if side == "source" or is_security(key):
            return [part.entry(f"{side}.cluster.{key}")]
        if key.startswith("producer."):
            return [part.entry(f"producer.override.{key.removeprefix('producer.')}")]
        if key.startswith("config.providers") or key in _OF_WORKERS:
            return [part.entry(key)]
        if flow_keys.RENAMED.get(key, key) in flow_keys.CARRIED:
            self._read.leave(part, "MirrorMaker 2 reads it in the config of a connector only")
        elif why := reason(key):
            self._read.leave(part, why)
        else:
            self._read.refuse(part, UNKNOWN)
        return []

    def _patterns(self, parts: Mapping[str, Field]) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for name, key in _PATTERNS.items():
            if name in parts and key in entries:
                self._read.leave(
                    parts[name], f"{entries[key].written} is given as well, and counts"
                )
            elif name in parts:
                entries[key] = parts[name].entry(key)
        return entries

    def _read_connector(
        self, connector: Field, kind: str, ends: list[Entry], patterns: Mapping[str, Entry]
    ) -> None:
        parts = connector.parts()
        config = parts["config"].parts() if "config" in parts else {}
        own = [part.entry(key) for key, part in config.items()]
        # Since v1 a connector's own config overrides the clusters' settings; before, the reverse.
        layers = [*ends, *own] if self._spec.part("target") else [*own, *ends]
        entries = {"connector.class": connector.entry("connector.class", f"{_CLASS}{kind}")}
        for entry in (*layers, *patterns.values()):
            before = entries.get(entry.key)
            if before is not None and before.place != entry.place:
                self._read.not_needed.append((before, f"{entry.written} is given too, and counts"))
            entries[entry.key] = entry
        for name, part in parts.items():
            if name == "pause" and "state" in parts:
                self._read.leave(part, "state is given as well, and counts")
            elif name in ("pause", "state"):
                stands = part.text() in ("true", "paused", "stopped")
                entries[STATE] = part.entry(STATE, "paused" if stands else "running")
            elif name == "tasksMax":
                entries["tasks.max"] = part.entry("tasks.max")
            elif name in _CONNECTOR_NOT_NEEDED:
                self._read.leave(part, _CONNECTOR_NOT_NEEDED[name])
            elif name != "config":
                self._read.refuse(part, UNKNOWN)
        self._read.connectors.append(list(entries.values()))
