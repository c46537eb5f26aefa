"""The topology file: clusters, the lake and the flows between clusters (DESIGN section 5).

`load_topology` is the way in. Whatever is wrong with a file becomes one `TopologyError` sentence that names the file
and the key. `${env:NAME}` and `${secret:scope/key}` stay text here; `mirrorlake.core.references` resolves them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from mirrorlake.core.policy import DefaultPolicy, IdentityPolicy, ReplicationPolicy, check_topic_name, is_usable_alias
from mirrorlake.core.selection import DEFAULT_GROUPS_EXCLUDE, DEFAULT_TOPICS_EXCLUDE, TopicSelection, check_pattern
from mirrorlake.core.topology_file import explain, nearest, read_mapping
from mirrorlake.errors import TopologyError


def _names(value: object) -> object:
    """Let a list of texts be written as one text with commas, as Kafka's own configuration does."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts):
        return tuple(part.strip() for part in parts if part.strip())
    return value


def _patterns(value: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in value:
        if reason := check_pattern(pattern):
            raise ValueError(f"holds the invalid regular expression {pattern!r}: {reason}")
    return value


def _beside(value: str | None, info: ValidationInfo) -> str | None:
    """Resolve a relative path against the topology file's folder; leave URLs, PEM text and references alone."""
    directory = (info.context or {}).get("directory")
    if (
        not value
        or directory is None
        or value.startswith(("${", "-----BEGIN"))
        or re.match(r"[A-Za-z][\w+.-]*:", value)
    ):
        return value
    return str(directory / Path(value).expanduser())


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Override = dict[str, str | int | bool]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Security(_Model):
    """How to speak to a cluster; rendered for librdkafka and for the JVM by `mirrorlake.kafka.config` (DESIGN 7).

    Files are PEM files; a relative one lies beside the topology file. A reference may stand for the PEM text itself.
    """

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: str | None = None
    password: SecretStr | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: SecretStr | None = None

    _resolve_files = field_validator("ca_file", "certificate_file", "key_file")(_beside)

    @model_validator(mode="after")
    def _complete(self) -> "Security":
        login = {"mechanism": self.mechanism, "username": self.username, "password": self.password}
        files = {name: getattr(self, name) for name in ("ca_file", "certificate_file", "key_file", "key_password")}
        sasl, encrypted = self.protocol.startswith("SASL"), self.protocol.endswith("SSL")
        if sasl and (missing := [name for name, value in login.items() if value is None]):
            raise ValueError(f"needs {' and '.join(missing)} with protocol {self.protocol}")
        if not sasl and (unused := [name for name, value in login.items() if value is not None]):
            raise ValueError(f"gives {' and '.join(unused)}, which protocol {self.protocol} would never use")
        if not encrypted and (unused := [name for name, value in files.items() if value is not None]):
            raise ValueError(f"gives {' and '.join(unused)}, which protocol {self.protocol} would never use")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("needs certificate_file and key_file together")
        return self


class Landing(_Model):
    """How a source cluster is read into `records`: batch size in records, files per batch, trigger in milliseconds."""

    max_records_per_batch: int = Field(default=2_000_000, ge=1)
    files_per_batch: int = Field(default=2, ge=1)
    trigger_ms: int = Field(default=0, ge=0)


class Cluster(_Model):
    """One Kafka cluster. `consumer`, `producer` and `admin` are client settings under Kafka's own names."""

    bootstrap_servers: str = Field(min_length=1)
    security: Security | None = None
    consumer: Override = {}
    producer: Override = {}
    admin: Override = {}
    landing: Landing = Landing()

    @field_validator("bootstrap_servers", mode="before")
    @classmethod
    def _join(cls, value: object) -> object:
        names = _names(value)
        return ",".join(names) if isinstance(names, tuple) else value


class Lake(_Model):
    """Where the tables live: a directory (or a URL that Spark can write), or catalog and schema of Unity Catalog."""

    path: str | None = None
    catalog: str | None = None
    schema_name: str | None = Field(default=None, alias="schema")
    checkpoints: str | None = None

    _resolve_paths = field_validator("path", "checkpoints")(_beside)

    @model_validator(mode="after")
    def _one_place(self) -> "Lake":
        named = (bool(self.catalog), bool(self.schema_name))
        if named not in ((True, True), (False, False)) or bool(self.path) == all(named):
            raise ValueError("needs either path, or catalog and schema")
        return self


class Flow(_Model):
    """Settings of one flow, under MirrorMaker 2's names with `_` for `.` and with its meaning (mm2.md 1.2).

    `refresh_topics_interval_seconds` is in seconds. `replication_factor` None means the source topic's own factor.
    `produce_tasks` is the number of transactional shards that write to the target.
    """

    enabled: bool = True
    topics: Names = (".*",)
    topics_exclude: Names = DEFAULT_TOPICS_EXCLUDE
    groups: Names = (".*",)
    groups_exclude: Names = DEFAULT_GROUPS_EXCLUDE
    policy: Literal["default", "identity"] = "default"
    replication_policy_separator: str = Field(default=".", pattern=r"^[a-zA-Z0-9._-]{1,16}$")
    replication_factor: int | None = Field(default=None, ge=1, le=32767)
    refresh_topics_interval_seconds: int = Field(default=10, ge=1)
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    produce_tasks: int = Field(default=2, ge=1)

    _check_patterns = field_validator("topics", "topics_exclude", "groups", "groups_exclude")(_patterns)


@dataclass(frozen=True)
class ResolvedFlow:
    """One flow with its two ends: aliases `source` and `target`, and `settings` with the defaults merged in."""

    name: str
    source: str
    target: str
    settings: Flow

    def policy_object(self, aliases: frozenset[str]) -> ReplicationPolicy:
        """Say how this flow names topics on its target; `aliases` are all clusters' (KIP-382, KIP-690)."""
        separator = self.settings.replication_policy_separator
        if self.settings.policy == "identity":
            return IdentityPolicy(separator=separator, aliases=aliases, source_alias=self.source)
        return DefaultPolicy(separator=separator, aliases=aliases)

    def selection(self, aliases: frozenset[str]) -> TopicSelection:
        """Say which source topics this flow mirrors; `aliases` are all clusters' (mm2.md 1.4)."""
        settings, policy = self.settings, self.policy_object(aliases)
        return TopicSelection(settings.topics, settings.topics_exclude, policy, self.source, self.target)


class Topology(_Model):
    """A whole topology file. `directory` is the folder of the file, against which relative paths were resolved."""

    clusters: dict[str, Cluster] = Field(min_length=1)
    lake: Lake
    defaults: Flow = Flow()
    flows: dict[str, Flow] = Field(min_length=1)
    _directory: Path = PrivateAttr(default=Path("."))

    def model_post_init(self, context: Any) -> None:
        """Keep the folder that `load_topology` hands over as validation context."""
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
        merged = {key: value for key, value in data.items() if key != "defaults" or value is not None}
        if isinstance(defaults, dict) and isinstance(flows, dict):
            pairs = ((name, {} if flow is None else flow) for name, flow in flows.items())
            merged["flows"] = {name: {**defaults, **flow} if isinstance(flow, dict) else flow for name, flow in pairs}
        return merged

    @model_validator(mode="after")
    def _consistent(self) -> "Topology":
        for alias in self.clusters:
            if reason := check_topic_name(alias):
                raise ValueError(f"clusters.{alias} is no alias that can stand in a topic name: {reason}")
        for name, flow in self.flows.items():
            self._check_flow(name, flow.replication_policy_separator)
        return self

    def _check_flow(self, name: str, separator: str) -> None:
        source, arrow, target = name.partition("->")
        if not arrow or not source or not target or "->" in target:
            raise ValueError(f"flows.{name} is no flow name; write source->target with two cluster aliases")
        for alias in (source, target):
            if alias not in self.clusters:
                raise ValueError(f"flows.{name} names the unknown cluster {alias}{nearest(alias, self.clusters)}")
        if source == target:
            raise ValueError(f"flows.{name} has the same cluster on both ends; a flow needs two clusters")
        for alias in self.clusters:
            if not is_usable_alias(alias, separator):
                raise ValueError(
                    f"clusters.{alias} holds the separator {separator!r} of flow {name}, so remote topic names"
                    " would be ambiguous; rename the alias or set replication_policy_separator"
                )

    def flow(self, name: str) -> ResolvedFlow:
        """Give one flow by name, enabled or not; raises TopologyError that names the nearest known flow."""
        if name not in self.flows:
            raise TopologyError(f"there is no flow {name}{nearest(name, self.flows)}", flow=name)
        source, _, target = name.partition("->")
        return ResolvedFlow(name, source, target, self.flows[name])

    def active_flows(self, names: Sequence[str] | None = None) -> list[ResolvedFlow]:
        """Give the enabled flows, or the named ones; raises TopologyError for an unknown or a disabled name."""
        if names is None:
            return [self.flow(name) for name, settings in self.flows.items() if settings.enabled]
        chosen = [self.flow(name) for name in dict.fromkeys(names)]
        for flow in chosen:
            if not flow.settings.enabled:
                raise TopologyError(
                    f"flow {flow.name} is disabled; set flows.{flow.name}.enabled: true", flow=flow.name
                )
        return chosen

    def sources(self) -> dict[str, list[ResolvedFlow]]:
        """Group the enabled flows by source alias: one landing query each (DESIGN 1)."""
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
    ("defaults",): Flow,
    ("flows", "*"): Flow,
}


def load_topology(path: Path) -> Topology:
    """Read and check a topology file; raises TopologyError, one sentence that names the file and the key."""
    data = read_mapping(path)
    try:
        return Topology.model_validate(data, context={"directory": path.absolute().parent})
    except ValidationError as error:
        raise explain(path, error, _MODELS) from None
