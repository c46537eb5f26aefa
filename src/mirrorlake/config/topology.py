"""The topology file: clusters, the lake and the flows between clusters (docs/settings.md).

`load_topology` is the entry point. Any error becomes one `TopologyError` sentence that names the
file and the key. `${env:NAME}` and `${secret:scope/key}` stay text (`config/references.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator

from mirrorlake.config.cluster import Cluster, Landing
from mirrorlake.config.fields import Model
from mirrorlake.config.flow import Flow
from mirrorlake.config.lake import Lake, Maintenance
from mirrorlake.config.metrics import Metrics, Otlp, Tracking
from mirrorlake.config.objectives import FlowObjectives, Objectives
from mirrorlake.config.security import Security
from mirrorlake.config.topology_file import explain, nearest, read_mapping
from mirrorlake.errors import TopologyError
from mirrorlake.naming.naming import Naming
from mirrorlake.naming.policy import check_topic_name, is_usable_alias, readable_aliases
from mirrorlake.naming.selection import TopicSelection, matches_any


@dataclass(frozen=True)
class ResolvedFlow:
    """One flow with its two ends: aliases `source` and `target`, `settings` with the defaults
    merged in, and how it names topics on its target."""

    name: str
    source: str
    target: str
    settings: Flow
    naming: Naming

    def target_topic(self, topic: str) -> str:
        """The target's name of a source topic, mirrored or not. Raises as `naming` does."""
        return self.naming.target_topic(topic)

    @cached_property
    def selection(self) -> TopicSelection:
        """Topics it mirrors (docs/mm2.md, "Which topics are mirrored"). Raises as `naming` does."""
        settings = self.settings
        return TopicSelection(
            settings.topics,
            settings.topics_exclude,
            self.naming,
            self.target,
            heartbeats=settings.heartbeats_replication_enabled,
        )

    @property
    def paused(self) -> bool:
        """Whether the whole flow is paused."""
        return self.settings.paused is True

    def pauses(self, topic: str) -> bool:
        """Whether a source topic is paused, by its name or with the whole flow."""
        paused = self.settings.paused
        return paused if isinstance(paused, bool) else matches_any(paused, topic)


class Topology(Model):
    """A whole topology file. Relative paths were resolved against `directory`, its folder."""

    clusters: dict[str, Cluster] = Field(min_length=1)
    lake: Lake
    defaults: Flow = Flow()
    flows: dict[str, Flow] = Field(min_length=1)
    tracking: Tracking = Tracking()
    objectives: Objectives = Objectives()
    maintain: Maintenance = Maintenance()
    metrics: Metrics = Metrics()
    #: How processes of one file share the work: by a lease in the lake, or as members of consumer
    #: groups that stand by for each other (docs/high_availability.md).
    availability: Literal["lease", "kafka"] = "lease"
    _directory: Path = PrivateAttr(default=Path("."))

    def model_post_init(self, context: Any) -> None:
        """Keep the folder that `load_topology` passes as validation context."""
        self._directory = (context or {}).get("directory", Path("."))

    @property
    def directory(self) -> Path:
        """Folder of the topology file."""
        return self._directory

    @property
    def aliases(self) -> frozenset[str]:
        """Aliases of all clusters."""
        return frozenset(self.clusters)

    @model_validator(mode="before")
    @classmethod
    def _merge_defaults(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        defaults, flows = data.get("defaults") or {}, data.get("flows")
        merged = {
            key: value for key, value in data.items() if key != "defaults" or value is not None
        }
        if isinstance(defaults, dict) and isinstance(flows, dict):
            pairs = ((name, {} if flow is None else flow) for name, flow in flows.items())
            merged["flows"] = {
                name: {**defaults, **flow} if isinstance(flow, dict) else flow
                for name, flow in pairs
            }
        return merged

    @model_validator(mode="after")
    def _consistent(self) -> "Topology":
        for alias in self.clusters:
            if not alias.isprintable() or alias.strip() != alias or "->" in alias:
                raise ValueError(
                    f"clusters.{alias!r} is no alias: write it without -> and spaces around it"
                )
        for name in self.flows:
            self._check_ends(name)
        for name, flow in self.flows.items():
            if flow.enabled:
                self._check_names(name, flow)
        for name in self.objectives.flows:
            if name not in self.flows:
                raise ValueError(
                    f"objectives.flows names the unknown flow {name}{nearest(name, self.flows)}"
                )
        return self

    def _check_ends(self, name: str) -> None:
        source, arrow, target = name.partition("->")
        if not arrow or not source or not target or "->" in target:
            raise ValueError(
                f"flows.{name} is not a flow name; write source->target with two cluster aliases"
            )
        if not {source, target} <= {source.strip(), target.strip()}:
            tight = f"{source.strip()}->{target.strip()}"
            raise ValueError(f"flows.{name} has blanks beside its arrow; write {tight}")
        for alias in (source, target):
            if alias not in self.clusters:
                raise ValueError(
                    f"flows.{name} names the unknown cluster {alias}{nearest(alias, self.clusters)}"
                )
        if source == target:
            raise ValueError(
                f"flows.{name} has the same cluster on both ends; a flow needs two clusters"
            )

    def _check_names(self, name: str, flow: Flow) -> None:
        """Refuse a source alias that makes names invalid or ambiguous; none has the target's."""
        source, separator = name.partition("->")[0], flow.replication_policy_separator
        if not (
            flow.policy == "default"
            or flow.heartbeats_replication_enabled
            or flow.emit_checkpoints_enabled
        ):
            return
        if reason := check_topic_name(source):
            raise ValueError(
                f"clusters.{source} is not an alias that a topic name can hold: {reason}"
            )
        usable = is_usable_alias(source, separator)
        if flow.policy == "default" and not usable:
            raise ValueError(
                f"clusters.{source} holds the separator {separator!r} of flow {name}, so remote "
                "topic names would be ambiguous; rename the alias or set "
                "replication_policy_separator"
            )
        if source not in readable_aliases(self._aliases_in_names(separator), separator):
            raise ValueError(
                f"clusters.{source} begins with another alias and the separator {separator!r} of "
                f"flow {name}, so names of heartbeats would be ambiguous; rename the alias or set "
                "replication_policy_separator"
            )

    def _aliases_in_names(self, separator: str) -> frozenset[str]:
        """The aliases that topic names with this separator may begin with: those that can be parsed
        back, and those with which flows of this file name topics."""
        named = {name.partition("->")[0] for name, flow in self.flows.items() if flow.enabled}
        return frozenset(
            alias for alias in self.clusters if alias in named or is_usable_alias(alias, separator)
        )

    def flow(self, name: str) -> ResolvedFlow:
        """A flow by name, enabled or not; raises TopologyError that names the nearest one."""
        if name not in self.flows:
            raise TopologyError(f"there is no flow {name}{nearest(name, self.flows)}")
        source, _, target = name.partition("->")
        settings = self.flows[name]
        return ResolvedFlow(name, source, target, settings, self.naming(source, settings))

    def naming(self, source: str, settings: Flow) -> Naming:
        """How the settings of a flow name topics of its source on the target."""
        separator = settings.replication_policy_separator
        enabled = settings.replication_policy_internal_topic_separator_enabled
        return Naming(
            settings.policy,
            source,
            self._aliases_in_names(separator),
            separator=separator,
            # a dot, as before KIP-949
            internal_separator=separator if enabled else ".",
            directory=self.directory,
        )

    def active_flows(self, names: Sequence[str] | None = None) -> list[ResolvedFlow]:
        """The enabled flows, or those named; raises TopologyError if unknown or disabled."""
        if names is None:
            return [self.flow(name) for name, settings in self.flows.items() if settings.enabled]
        chosen = [self.flow(name) for name in dict.fromkeys(names)]
        for flow in chosen:
            if not flow.settings.enabled:
                raise TopologyError(
                    f"flow {flow.name} is disabled; set flows.{flow.name}.enabled: true"
                )
        return chosen

    def require_flows(self, names: Sequence[str] | None = None) -> list[ResolvedFlow]:
        """Like `active_flows`, but also raises TopologyError if the file has no enabled flow."""
        flows = self.active_flows(names)
        if not flows and names is None:
            raise TopologyError(
                "no flow of the topology file is enabled, so that there is nothing to do for any; "
                f"set flows.{next(iter(self.flows))}.enabled: true"
            )
        return flows

    def objectives_of(self, flow: str) -> dict[str, int]:
        """Thresholds, by name. The default of `heartbeat_seconds` follows the lake's pace."""
        thresholds = self.objectives.for_flow(flow)
        own = self.objectives.flows.get(flow)
        is_set = "heartbeat_seconds" in self.objectives.model_fields_set
        if not is_set and (own is None or own.heartbeat_seconds is None):
            thresholds["heartbeat_seconds"] = self.lake.pace.heartbeats_late
        return thresholds

    def quiet_seconds(self, flow: str) -> float:
        """How old a running flow's newest sample may be, s: three intervals, at least a minute."""
        interval = self.flow(flow).settings.sample_positions_interval_seconds
        return max(60.0, 3 * max(interval, self.lake.pace.samples))

    def heartbeats_wait(self, flows: Iterable[str]) -> float:
        """How long a source's heartbeats wait for other records of these flows, seconds."""
        objectives = [self.objectives_of(flow) for flow in flows]
        return self.lake.pace.heartbeats_within(
            (each["heartbeat_seconds"], each["stuck_seconds"]) for each in objectives
        )

    def sources(self) -> dict[str, list[ResolvedFlow]]:
        """Enabled flows by source alias: one landing query each (DESIGN.md, "Who runs what")."""
        grouped: dict[str, list[ResolvedFlow]] = {}
        for flow in self.active_flows():
            grouped.setdefault(flow.source, []).append(flow)
        return grouped


_MODELS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Topology,
    ("clusters", "*"): Cluster,
    ("clusters", "*", "security"): Security,
    ("clusters", "*", "landing"): Landing,
    ("lake",): Lake,
    ("tracking",): Tracking,
    ("defaults",): Flow,
    ("flows", "*"): Flow,
    ("objectives",): Objectives,
    ("objectives", "flows", "*"): FlowObjectives,
    ("maintain",): Maintenance,
    ("metrics",): Metrics,
    ("metrics", "otlp"): Otlp,
}


def load_topology(path: Path) -> Topology:
    """Read and check a topology file; raises TopologyError, a sentence with file and key."""
    data = read_mapping(path)
    try:
        return Topology.model_validate(data, context={"directory": path.absolute().parent})
    except ValidationError as error:
        raise explain(path, error, _MODELS) from None
