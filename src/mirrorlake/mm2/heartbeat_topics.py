"""Finds heartbeats topics by content: others may be named `device.heartbeats`, or `heartbeats`."""

import re
from collections.abc import Callable, Collection, Iterable

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import ClusterUnreachable, InputError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.records import first_rows
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.objectives import known_heartbeats, note_heartbeat_topics
from mirrorlake.mm2.formats import decode_heartbeat, encode_heartbeat
from mirrorlake.naming.policy import HEARTBEATS
from mirrorlake.offsets.positions import partitions_of

#: the word after any separator
_NAMED = re.compile(r"(?:^|[^A-Za-z0-9])heartbeats$")
KeyAndValue = tuple[bytes | None, bytes | None]


def may_be_heartbeats(topic: str) -> bool:
    """Whether a topic is a heartbeats topic by MirrorMaker 2's rule, with any separator."""
    return _NAMED.search(topic) is not None


def is_heartbeat(key: bytes | None, value: bytes | None) -> bool:
    """Whether a record is a heartbeat of MirrorMaker 2 or mirrorlake."""
    try:
        return encode_heartbeat(decode_heartbeat(key, value)) == (key, value)
    except (InputError, UnicodeDecodeError):
        return False


def are_heartbeats(records: Iterable[KeyAndValue], name: str) -> bool:
    """Whether a topic contains heartbeats, by the first key and value of each partition. If there
    is none, the name decides: a cluster's own heartbeats go to `heartbeats`."""
    answers = [is_heartbeat(key, value) for key, value in records]
    return all(answers) if answers else name == HEARTBEATS


def first_records_of(
    admin: ClusterAdmin, settings: Settings, topics: Collection[str]
) -> dict[str, list[KeyAndValue]]:
    """Read the first key and value of each non-empty partition of topics of a cluster. Left out are
    topics about which a silent leader leaves doubt. Raises ClusterUnusable, KafkaException."""
    there = admin.topics()
    keys = partitions_of({name: there[name].partitions for name in topics if name in there})
    starts = admin.start_offsets(keys, skip_silent=True)
    ends = admin.end_offsets(keys, skip_silent=True)
    filled = {key: starts[key] for key in keys if key in starts and starts[key] < ends.get(key, 0)}
    records: dict[str, list[KeyAndValue]] = {name: [] for name in topics}
    for (name, _), row in (first_rows(admin.alias, settings, filled) if filled else {}).items():
        records[name].append((row.key, row.value))
    silent = {key[0] for key in keys if key not in starts or key not in ends}
    return {
        name: of_topic
        for name, of_topic in records.items()
        if name not in silent or not all(is_heartbeat(*record) for record in of_topic)
    }


def holds_other_records(admin: ClusterAdmin, settings: Settings, topic: str) -> bool:
    """Whether a topic contains records other than heartbeats; False if we are not authorized to
    read it. Raises ClusterUnreachable if a leader does not answer."""
    try:
        records = first_records_of(admin, settings, [topic])
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise
        return False
    if topic not in records:
        raise ClusterUnreachable(
            f"cluster {admin.alias} does not say whether topic {topic} holds an application's "
            "records: a leader of it does not answer; no heartbeat is written there meanwhile",
            alias=admin.alias,
        )
    return not are_heartbeats(records[topic], HEARTBEATS)


class HeartbeatTopics:
    """The heartbeats topics that a flow mirrors, found at its source and noted for views."""

    def __init__(
        self,
        flow: str,
        lake: Lake,
        admin: ClusterAdmin,
        settings: Callable[[], Settings],
        selects: Callable[[str], bool],
    ) -> None:
        """`settings` are those of a consumer; `selects` says whether the flow mirrors a topic."""
        self._flow, self._lake, self._admin = flow, lake, admin
        self._settings, self._selects = settings, selects
        #: By name and Kafka's topic id: a recreated topic may be an application's.
        self._by_content: dict[tuple[str, str], bool] = {}
        self._noted: frozenset[str] | None = None

    def __contains__(self, topic: object) -> bool:
        return topic in ((HEARTBEATS,) if self._noted is None else self._noted)

    def look(self) -> None:
        """Check topics with such names that were not checked before, and record changes. A topic
        that cannot be read now keeps its recorded state; without one it counts as a user's topic.
        Raises ClusterUnusable, KafkaException."""
        named = [
            name for name in self._admin.topics() if may_be_heartbeats(name) and self._selects(name)
        ]
        there, _ = self._admin.identities(named)
        ids = {name: topic.topic_id for name, topic in there.items()}
        keys = {name: (name, ids.get(name, "")) for name in {*named, HEARTBEATS}}
        unknown = {name for name in named if keys[name] not in self._by_content}
        records = first_records_of(self._admin, self._settings(), unknown) if unknown else {}
        for name, of_topic in records.items():
            if of_topic:
                self._by_content[keys[name]] = are_heartbeats(of_topic, name)
        unseen = unknown - records.keys()
        topics = frozenset(
            name
            for name, key in keys.items()
            if name not in unseen and self._by_content.get(key, name == HEARTBEATS)
        )
        if unseen:
            noted = known_heartbeats(self._lake, self._flow, unnoted=())
            topics |= frozenset(filter(noted, unseen))
        if topics != self._noted:
            note_heartbeat_topics(self._lake, self._flow, topics)
            self._noted = topics
