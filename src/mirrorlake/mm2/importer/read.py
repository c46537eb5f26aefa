"""From files to a checked topology document and the report about it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mirrorlake.config.flow_reasons import normal
from mirrorlake.config.topology import Topology
from mirrorlake.config.topology_file import explain
from mirrorlake.errors import InputError
from mirrorlake.mm2.importer import connect, dedicated, mirrormaker1, strimzi
from mirrorlake.mm2.importer.beside import set_beside
from mirrorlake.mm2.importer.draft import Draft
from mirrorlake.mm2.importer.entries import Entry, SourceFile
from mirrorlake.mm2.importer.flow_keys import INTERVALS, RENAMED
from mirrorlake.mm2.importer.kinds import FOREIGN, KINDS, parts_of
from mirrorlake.mm2.importer.mirrormaker1 import Options
from mirrorlake.mm2.importer.report import Report
from mirrorlake.mm2.importer.secrets import Secrets
from mirrorlake.naming.policy import readable_aliases

Settings = Mapping[str, Entry]
_START = (
    "a flow starts at the oldest record that its source has, and what MirrorMaker wrote to the "
    "target stays there: stop MirrorMaker first, and mirror into topics that are empty, or the "
    "target holds records twice"
)
_START_BESIDE = (
    "a flow starts at the oldest record that its source has, beside MirrorMaker 2, which goes on: "
    "the target holds each record twice, under two names, until MirrorMaker 2 and its copies are "
    "gone; docs/migrate.md has the steps"
)


@dataclass(frozen=True)
class Imported:
    """A topology document that passes `load_topology` once each cluster's security block has a
    login; its report, and the variables and Kubernetes Secrets that it reads, each with its keys.

    `arrives` are the report's notes on records that will arrive differently than with MirrorMaker.
    """

    topology: dict[str, Any]
    report: dict[str, Any]
    variables: Mapping[str, str]
    arrives: Sequence[str] = ()
    mounts: Mapping[str, Sequence[str]] = field(default_factory=dict)


def import_files(
    files: Sequence[SourceFile],
    options: Options = Options(),  # noqa: B008 (frozen)
    beside: bool = False,
) -> Imported:
    """Import the files of one replication; with `beside` as a topology that runs beside it. Raises
    InputError that names the file and the key."""
    resources = [strimzi.read_strimzi(file) for file in files if strimzi.is_resource(file)]
    every = [part for file in files if not strimzi.is_resource(file) for part in parts_of(file)]
    every += [("connector", entries) for read in resources for entries in read.connectors]
    parts = [part for part in every if part[0] != FOREIGN] or every
    kinds = {kind for kind, _ in parts}
    given = options.entries()
    if len(kinds) > 1:
        raise InputError(
            f"the files belong to {' and to '.join(sorted(KINDS[kind] for kind in kinds))}; "
            "import each alone"
        )
    kind = kinds.pop()
    if given and kind != "mirrormaker1":
        raise InputError(
            f"{', '.join(given)} belongs to MirrorMaker 1, and the files belong to {KINDS[kind]}"
        )
    if beside and kind == "mirrormaker1":
        raise InputError(
            "--beside is for MirrorMaker 2; MirrorMaker 1 leaves no offset syncs to move groups by"
        )
    if kind == FOREIGN:
        connect.kind_of({entry.key: entry for entry in parts[0][1]})
    aside = [entry for read in resources for entry in read.entries()]
    report = Report([*aside, *(entry for _, part in every for entry in part), *given.values()])
    for read in resources:
        read.tell(report)
    for entry in (entry for part, entries in every if part != kind for entry in entries):
        report.skip(entry, "its connector is none of MirrorMaker 2's, and goes on as it is")
    settings = [_last(entries, report) for _, entries in parts]
    if kind == "dedicated":
        settings = [_merged(settings, report)]
    secrets = Secrets(report, _providers(settings))
    draft = Draft(report, secrets)
    if kind == "dedicated":
        dedicated.read_dedicated(settings[0], draft)
    elif kind == "connector":
        connect.read_connectors(settings, draft)
    else:
        mirrormaker1.read_mirrormaker1(settings, given, draft)
    document = draft.document()
    secrets.note_mounts()
    _name_heartbeats(document, report)
    if beside:
        set_beside(document, report)
    else:
        _keep_groups(document, report, KINDS[kind])
    _check(document, draft.incomplete, files)
    _note_arrivals(document, report, draft.committed_only(), beside)
    _note_defaults(document, report, kind, beside)
    return Imported(
        document, report.as_document(), secrets.variables, tuple(report.arrives), secrets.mounts
    )


def _last(entries: Iterable[Entry], report: Report) -> dict[str, Entry]:
    """Keep the last of keys given several times in a file, as Kafka does."""
    last: dict[str, Entry] = {}
    for entry in entries:
        if entry.key in last:
            report.skip(
                last[entry.key], f"line {entry.line} gives the key again, and the last one counts"
            )
        last[entry.key] = entry
    for old, new in RENAMED.items():
        for key in [key for key in last if key == old or key.endswith(f".{old}")]:
            if (newer := key.removesuffix(old) + new) in last:
                report.skip(last.pop(key), f"{newer} is given as well, and the newer name counts")
    return last


def _merged(settings: Sequence[Settings], report: Report) -> dict[str, Entry]:
    """Merge the files of one dedicated cluster; raises InputError if they contradict each other."""
    merged: dict[str, Entry] = {}
    for entry in (entry for one in settings for entry in one.values()):
        before = merged.setdefault(entry.key, entry)
        if before.value != entry.value:
            raise entry.wrong(f"contradicts {before.at}; give files of one replication only")
        if before is not entry:
            report.follow(entry, before)
    return merged


def _providers(settings: Iterable[Settings]) -> dict[str, str]:
    prefix, suffix = "config.providers.", ".class"
    entries = [entry for one in settings for entry in one.values()]
    return {
        entry.key[len(prefix) : -len(suffix)]: entry.value
        for entry in entries
        if entry.key.startswith(prefix) and entry.key.endswith(suffix)
    }


def _check(
    document: Mapping[str, Any], incomplete: Collection[str], files: Sequence[SourceFile]
) -> None:
    """Raise InputError for all that `load_topology` would refuse but incomplete security blocks."""
    clusters = {
        alias: {key: value for key, value in cluster.items() if key != "security"}
        if alias in incomplete
        else cluster
        for alias, cluster in document["clusters"].items()
    }
    try:
        Topology.model_validate({**document, "clusters": clusters})
    except ValidationError as error:
        made_of = ", ".join(file.name for file in files)
        raise explain(Path(f"the topology made of {made_of}"), error, {}) from None


def _name_heartbeats(document: dict[str, Any], report: Report) -> None:
    """Use a dot as the separator if the file's own makes names of heartbeats and checkpoints
    ambiguous; where topics keep their names, no others contain it."""
    aliases = frozenset(document["clusters"])
    for flow, own in document["flows"].items():
        settings, alias = {**document.get("defaults", {}), **own}, flow.partition("->")[0]
        separator = settings.get("replication_policy_separator", ".")
        if settings.get("policy") != "identity" or alias in readable_aliases(aliases, separator):
            continue
        own["replication_policy_separator"] = "."
        report.note(
            f"flows.{flow}.replication_policy_separator is a dot: topics keep their names, and "
            f"alias {alias} begins with another one and {separator!r}, so names of heartbeats "
            f"could be read in two ways; they arrive as {alias}.heartbeats"
        )


def _unset(document: Mapping[str, Any], name: str) -> list[str]:
    """The flows for which the files leave a setting to its default."""
    defaults = document.get("defaults", {})
    return [
        flow for flow, settings in document["flows"].items() if name not in {**defaults, **settings}
    ]


def _keep_groups(document: dict[str, Any], report: Report, maker: str) -> None:
    """Do not sync consumer groups where MirrorMaker did not: a default must not begin to move them.

    With flows both ways, a briefly empty group would be set to its namesake's position.
    """
    flows = _unset(document, "sync_group_offsets_enabled")
    if not flows:
        return
    defaults = document.setdefault("defaults", {})
    defaults["sync_group_offsets_enabled"] = False
    document["flows"] = document.pop("flows")  # keeps the flows after the defaults
    report.note(
        f"sync_group_offsets_enabled is not set for {', '.join(flows)}: {maker} moves no groups "
        "then, so the topology says false, where mirrorlake's own default is true; set it to true "
        "where the target's groups are to follow, and no consumers of these groups' names work "
        "there"
    )


def _note_arrivals(
    document: Mapping[str, Any], report: Report, committed: Collection[str], beside: bool
) -> None:
    """Report first how arriving records will differ from MirrorMaker's with the same files."""
    dirty = [flow for flow in document["flows"] if flow.partition("->")[0] not in committed]
    if dirty:
        report.differs(
            f"{', '.join(dirty)}: MirrorMaker reads by isolation.level = read_uncommitted, its "
            "default, and copies records of aborted and of open transactions; mirrorlake reads "
            "committed records only, so aborted ones do not arrive, and behind an open "
            "transaction a partition waits until it ends"
        )
    report.differs(_START_BESIDE if beside else _START)


def _note_defaults(document: Mapping[str, Any], report: Report, kind: str, beside: bool) -> None:
    """Report settings for which our default replaces MirrorMaker 2's. One that works beside us
    goes on to write its offset syncs."""
    if kind == "mirrormaker1":
        return

    def unset(name: str) -> bool:
        return bool(_unset(document, name))

    if unset("replication_factor"):
        report.note(
            "replication_factor is not set: MirrorMaker 2 would take 2, mirrorlake takes each "
            "source topic's own"
        )
    if not beside and unset("emit_offset_syncs_enabled"):
        report.note(
            "emit_offset_syncs_enabled is not set: MirrorMaker 2 would write offset syncs, "
            "mirrorlake writes none; set it to true where another program reads them"
        )
    if unset("topics_exclude"):
        report.differs(
            "topics_exclude is not set: before 4.1 MirrorMaker 2 left out topics that end in "
            ".internal or -internal; mirrorlake mirrors them, as 4.1 does (KIP-1074)"
        )
    slow = [normal(key) for key in INTERVALS if not key.startswith("emit.heartbeats")]
    slow = [name for name in slow if unset(name)]
    if slow:
        report.note(
            f"not set: {', '.join(slow)}; MirrorMaker 2 would take 600 s or 60 s, mirrorlake takes "
            "10 s"
        )
