"""MirrorMaker 1: consumer and producer properties, and the options of `kafka-mirror-maker.sh`."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from mirrorlake.errors import InputError
from mirrorlake.mm2.importer import client_keys
from mirrorlake.mm2.importer.draft import Draft, Rank
from mirrorlake.mm2.importer.entries import Entry
from mirrorlake.mm2.importer.flow_keys import patterns_of

#: The place of options, for the report.
COMMAND_LINE = "command line"
_CONSUMER_ONLY = frozenset(
    {"group.id", "zookeeper.connect", "auto.offset.reset", "auto.commit.interval.ms"}
) | (client_keys.CARRIED["consumer"] - client_keys.CARRIED["producer"])
_PRODUCER_ONLY = frozenset(
    "acks buffer.memory max.request.size metadata.broker.list producer.type transactional.id "
    "enable.idempotence max.in.flight.requests.per.connection delivery.timeout.ms max.block.ms "
    "retries".split()
) | (client_keys.CARRIED["producer"] - client_keys.CARRIED["consumer"])
_ADDRESSES = ("bootstrap.servers", "metadata.broker.list")


@dataclass(frozen=True)
class Options:
    """The options of MirrorMaker 1's command line, and the aliases for the clusters."""

    whitelist: str | None = None
    blacklist: str | None = None
    num_streams: str | None = None
    source_alias: str | None = None
    target_alias: str | None = None

    def entries(self) -> dict[str, Entry]:
        """The options that were given, as entries of the report."""
        names = ("--whitelist", "--blacklist", "--num.streams", "--source-alias", "--target-alias")
        return {
            name: Entry(COMMAND_LINE, None, name, value.strip())
            for name, value in zip(names, astuple(self), strict=True)
            if value is not None
        }


def looks_like(settings: Mapping[str, Entry]) -> bool:
    """Whether a properties file could be one of MirrorMaker 1's two."""
    return any(name in settings for name in (*_ADDRESSES, "zookeeper.connect"))


def read_mirrormaker1(
    files: Sequence[Mapping[str, Entry]], options: Mapping[str, Entry], draft: Draft
) -> None:
    """Place every entry of both files and every option. Raises InputError if a file is missing."""
    roles = [_role(settings) for settings in files]
    if sorted(roles) != ["consumer", "producer"]:
        raise InputError(
            "MirrorMaker 1 needs one consumer and one producer file, and these look like "
            f"{' and '.join(roles)}"
        )
    source, target = _alias(options, "source"), _alias(options, "target")
    flow = f"{source}->{target}"
    for alias in (source, target):
        draft.add_cluster(alias)
    draft.add_flow(flow)
    draft.set_flow(flow, {"policy": "identity"})
    _place_topics(draft, flow, options)
    for role, settings in zip(roles, files, strict=True):
        alias = source if role == "consumer" else target
        for entry in settings.values():
            draft.place_client_setting(alias, role, entry, entry.key, Rank.CLUSTER)
        if not draft.has_address(alias):
            first = next(iter(settings.values()))
            raise InputError(
                f"{first.file} gives no bootstrap.servers, the address of cluster {alias}"
            )
    draft.report.note(
        "MirrorMaker 1 copied records only; mirrorlake also keeps topics, their configs, ACLs and "
        f"group positions alike, which settings of flows.{flow} switch off"
    )


def _alias(options: Mapping[str, Entry], side: str) -> str:
    entry = options.get(f"--{side}-alias")
    return entry.value if entry else side


def _role(settings: Mapping[str, Entry]) -> str:
    consumer, producer = len(_CONSUMER_ONLY & set(settings)), len(_PRODUCER_ONLY & set(settings))
    if consumer != producer:
        return "consumer" if consumer > producer else "producer"
    entry = next(iter(settings.values()))
    named = [
        role for role in ("consumer", "producer") if role in entry.file.rpartition("/")[2].lower()
    ]
    if len(named) != 1:
        raise InputError(
            f"{entry.file} could be the consumer's or the producer's file; let its name hold one "
            "of these words"
        )
    return named[0]


def _place_topics(draft: Draft, flow: str, options: Mapping[str, Entry]) -> None:
    whitelist, blacklist = options.get("--whitelist"), options.get("--blacklist")
    if whitelist is None and blacklist is None:
        raise InputError(
            "MirrorMaker 1 has its topics on the command line: give --whitelist as it was given "
            "there"
        )
    if whitelist is not None and blacklist is not None:
        raise whitelist.wrong("and --blacklist exclude each other, as they do in MirrorMaker 1")
    if whitelist is not None:
        draft.place_outcome(flow, patterns_of(whitelist, "topics", _patterns(whitelist)), whitelist)
        draft.set_flow(flow, {"topics_exclude": []})
    elif blacklist is not None:
        draft.place_outcome(
            flow, patterns_of(blacklist, "topics.exclude", _patterns(blacklist)), blacklist
        )
    if "--num.streams" in options:
        draft.report.skip(
            options["--num.streams"], "Spark deals the source's partitions over its cores"
        )
    for side in ("source", "target"):
        if f"--{side}-alias" in options:
            draft.report.carry(options[f"--{side}-alias"], f"clusters.{_alias(options, side)}")


def _patterns(entry: Entry) -> list[str]:
    """Split patterns as MirrorMaker 1 does: at commas, without blanks and surrounding quotes."""
    patterns = [part for part in entry.value.replace(" ", "").strip("\"'").split(",") if part]
    if not patterns:
        raise entry.wrong("is empty")
    return patterns
