"""Translates MirrorMaker 2's connector settings into settings of a flow (docs/mm2.md, "Settings").
A pattern that Java and Python read differently is left out, with a suggestion what to write."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from mirrorlake.config.fields import names_of
from mirrorlake.config.flow import Flow
from mirrorlake.config.flow_reasons import normal, reason
from mirrorlake.config.topology_file import explain
from mirrorlake.mm2.importer.entries import Entry, SettingOutcome, Value
from mirrorlake.naming.patterns import check_pattern, never_in_names, shared_form

#: Names in older versions, and today's.
RENAMED = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
    "topics.whitelist": "topics",
    "groups.whitelist": "groups",
}
LISTS = ("topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude")
FLAGS = (
    "enabled", "refresh.topics.enabled", "sync.topic.configs.enabled", "sync.topic.acls.enabled",
    "heartbeats.replication.enabled", "refresh.groups.enabled", "emit.checkpoints.enabled",
    "sync.group.offsets.enabled", "emit.heartbeats.enabled", "emit.offset-syncs.enabled",
    "replication.policy.internal.topic.separator.enabled",
)  # fmt: skip
INTERVALS = (
    "refresh.topics.interval.seconds", "sync.topic.configs.interval.seconds",
    "sync.topic.acls.interval.seconds", "refresh.groups.interval.seconds",
    "emit.checkpoints.interval.seconds", "sync.group.offsets.interval.seconds",
    "emit.heartbeats.interval.seconds",
)  # fmt: skip
FACTORS = (
    "replication.factor", "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor", "offset-syncs.topic.replication.factor",
)  # fmt: skip
TEXTS = ("replication.policy.separator", "use.defaults.from", "offset-syncs.topic.location")
CARRIED = frozenset((*LISTS, *FLAGS, *INTERVALS, *FACTORS, *TEXTS))
"""Keys that have a field of the same name, with `_` for `.`."""

_BYTES = (
    "mirrorlake copies keys, values and headers as bytes; a converter that changes them has "
    "no counterpart"
)
_NO_SEPARATOR = (
    "mirrorlake needs one and takes a dot; policy: identity, where names stay, uses it "
    "for heartbeats only"
)
#: The policy in AWS's guides for MSK, which keeps names (aws-samples/mirrormaker2-msk-migration).
_SAMPLE = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
#: Of what a flow would mirror more without, or under other names.
_PAUSED = "; then take paused away, which is set because without it {why}"
TRANSFORMS = "mirrorlake copies records as they are; change them where they are consumed"


def translate(entry: Entry, key: str) -> SettingOutcome | None:
    """Translate a connector's setting; `key` is without prefix. None if it is another's.

    Raises InputError for a value that MirrorMaker 2 itself, or a flow, does not accept.
    """
    key = RENAMED.get(key, key)
    if key in CARRIED:
        if "${" in entry.value:
            raise entry.wrong(
                "is a reference that mirrorlake cannot read here; write the value itself"
            )
        outcome = _carried(entry, key)
        _check(entry, outcome)
        return outcome
    if key in _BY_VALUE:
        return _BY_VALUE[key](entry.value)
    if changes_records(key):
        if not entry.value:
            return SettingOutcome(not_needed="it names none")
        return _paused(TRANSFORMS + _PAUSED.format(why="all records come, and as they are"))
    if normal(key) in Flow.model_fields or key.startswith(("ssl.", "sasl.", "security.")):
        return None
    why = reason(key)
    return SettingOutcome(not_needed=why) if why else None


def changes_records(key: str) -> bool:
    """Whether a setting is about what Connect changes in records, or leaves out of them."""
    return key.partition(".")[0] in ("transforms", "predicates")


def flag(entry: Entry) -> bool:
    """Read true or false as Kafka does; raises InputError for anything else."""
    if entry.value.lower() not in ("true", "false"):
        raise entry.wrong("must be true or false")
    return entry.value.lower() == "true"


def number(entry: Entry) -> int:
    """Read a whole number as Kafka does; raises InputError for anything else."""
    try:
        return int(entry.value)
    except ValueError:
        raise entry.wrong("must be a whole number") from None


def _carried(entry: Entry, key: str) -> SettingOutcome:
    name, value = normal(key), entry.value
    if key in LISTS:
        names = names_of(value)
        return patterns_of(entry, key, names if isinstance(names, tuple) else ())
    if key in FLAGS:
        return SettingOutcome({name: flag(entry)})
    if key in INTERVALS:
        seconds = number(entry)
        # MirrorMaker 2's scheduler never starts a job with a negative interval.
        if seconds < 0:
            return SettingOutcome({name.replace("_interval_seconds", "_enabled"): False})
        return SettingOutcome({name: seconds})
    if key in FACTORS:
        factor = number(entry)
        if factor == -1:
            own = key == "replication.factor"
            ours = "the source topic's own factor" if own else "3, or as many as it has brokers"
            return SettingOutcome(
                not_supported=f"-1 asks for the target's default factor; mirrorlake takes {ours}"
            )
        return SettingOutcome({name: factor})
    if key == "replication.policy.separator" and not value:
        return SettingOutcome(not_supported=_NO_SEPARATOR)
    return SettingOutcome({name: value})


def _check(entry: Entry, outcome: SettingOutcome) -> None:
    try:
        Flow.model_validate(dict(outcome.fields))
    except ValidationError as error:
        at = Path(f"{entry.file}, line {entry.line}" if entry.line else entry.file)
        raise explain(at, error, {}) from None


def _policy(value: str) -> SettingOutcome:
    name = value.rpartition(".")[2]
    if name == "DefaultReplicationPolicy":
        return SettingOutcome({"policy": "default"})
    if name == "IdentityReplicationPolicy" or value == _SAMPLE:  # Kafka's, or Strimzi's before it
        return SettingOutcome({"policy": "identity"})
    return _paused(
        "it is a Java class; set policy to identity, or to a Python class of yours as "
        "package.module:Class" + _PAUSED.format(why="mirrors are named by the default policy")
    )


def _paused(not_supported: str) -> SettingOutcome:
    """The outcome for what has no counterpart, and without which the flow must not run."""
    return SettingOutcome({"paused": True}, not_supported=not_supported)


def _only(
    default: str,
    not_needed: str,
    not_supported: str,
    otherwise: Callable[[str], SettingOutcome] = lambda why: SettingOutcome(not_supported=why),
) -> Callable[[str], SettingOutcome]:
    """Return a decision about a class: MirrorMaker's own needs no counterpart, others have none."""

    def decide(value: str) -> SettingOutcome:
        if value.rpartition(".")[2] in (default, ""):
            return SettingOutcome(not_needed=not_needed)
        return otherwise(not_supported)

    return decide


def _filter(what: str) -> Callable[[str], SettingOutcome]:
    kind = {"topics": "Topic", "groups": "Group", "config_properties": "ConfigProperty"}[what]
    lists = (
        f"{what} and {what}_exclude" if what != "config_properties" else "config_properties_exclude"
    )
    return _only(
        f"Default{kind}Filter",
        f"it is MirrorMaker 2's own, which reads the lists that {lists} hold",
        f"it is a Java class; write what it selects as {lists}"
        + _PAUSED.format(why="more is mirrored"),
        _paused,
    )


def _delivery(value: str) -> SettingOutcome:
    if value.lower() in ("enabled", "required"):
        return SettingOutcome({"delivery": "exactly_once"})
    return SettingOutcome(
        not_needed="mirrorlake writes exactly once; set delivery: at_least_once for targets that "
        "cannot"
    )


def _tolerance(value: str) -> SettingOutcome:
    if value.lower() == "all":
        return SettingOutcome(
            not_supported="mirrorlake skips no record; a refused one stops its partition as an "
            "incident"
        )
    return SettingOutcome(not_needed="mirrorlake skips no record either")


_BY_VALUE: dict[str, Callable[[str], SettingOutcome]] = {
    "replication.policy.class": _policy,
    "topic.filter.class": _filter("topics"),
    "group.filter.class": _filter("groups"),
    "config.property.filter.class": _filter("config_properties"),
    "exactly.once.source.support": _delivery,
    "exactly.once.support": _delivery,
    "errors.tolerance": _tolerance,
    "forwarding.admin.class": _only(
        "ForwardingAdmin",
        "it is MirrorMaker 2's own, which asks the target itself",
        "it is a Java class; mirrorlake makes topics by the target's own admin API",
    ),
    **{
        f"{part}.converter": _only(
            "ByteArrayConverter", "it copies bytes, as mirrorlake always does", _BYTES
        )
        for part in ("key", "value", "header")
    },
}


def differs(mine: Value, other: Value) -> bool:
    """Whether two values of a setting contradict; the order of a list does not matter."""
    if isinstance(mine, list) and isinstance(other, list):
        return set(mine) != set(other)
    return mine != other


_STRAY = (
    "{at} holds {pattern!r}, carried as it is, which matches no legal name: {char!r} is in none"
)
_HINTS = {
    "#": "; to Kafka a comment is a line of its own, so take what is behind the value away",
    " ": "; blanks within a pattern count",
    **dict.fromkeys("\"'", "; to Kafka quotes are part of the pattern, so take them away"),
}


def patterns_of(entry: Entry, key: str, patterns: Sequence[str]) -> SettingOutcome:
    """Translate a list with all `patterns` that can be carried. If an exclusion cannot be, so that
    the flow would mirror more than MirrorMaker does, the flow is paused."""
    left_out = {pattern: why for pattern in patterns if (why := check_pattern(pattern))}
    kept = [pattern for pattern in patterns if pattern not in left_out]
    fields: dict[str, Value] = {normal(key): kept}
    if left_out and key.endswith(".exclude"):
        fields["paused"] = True
    reasons = [_refusal(normal(key), pattern, why) for pattern, why in left_out.items()]
    notes = [] if key.startswith("groups") else [_note(entry, pattern) for pattern in kept]
    return SettingOutcome(
        fields, not_supported="; ".join(reasons), notes=tuple(note for note in notes if note)
    )


def _refusal(name: str, pattern: str, why: str) -> str:
    shared = shared_form(pattern)
    instead = f"write {shared!r} into {name}" if shared else f"write another one into {name}"
    paused = " and take paused away, which is set because less is excluded without it"
    return f"{pattern!r} is left out: {why}; {instead}{paused if 'exclude' in name else ''}"


def _note(entry: Entry, pattern: str) -> str:
    char = never_in_names(pattern)
    if char is None:
        return ""
    hint = next((_HINTS[sign] for sign in "#\"' " if sign in pattern), "")
    return _STRAY.format(at=entry.at, pattern=pattern, char=char) + hint
