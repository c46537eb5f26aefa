"""An in-memory cluster with the admin interface of a Kafka cluster, for topics and offsets."""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from confluent_kafka.admin import AdminClient

from mirrorlake.errors import ClusterUnusable, TargetRefused
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_topics import NotKept
from mirrorlake.kafka.values import TopicIdentity, TopicInfo
from mirrorlake.offsets.positions import LogEnd, LogEnds, TopicAndPartition


class MemoryCluster(ClusterAdmin):
    """Replaces a cluster's admin client: pass it to `Connections(topology, {"east": cluster})`.

    Partitions have a first and an end offset, but no records. Anything else (configs, ACLs, groups,
    rights) raises NotImplementedError. Set the attributes to what the test needs.

    Attributes:
        ends, starts: end offsets of each topic's partitions; first offsets that are not 0.
        refusal: the error that every call raises, as of a silent cluster; None while it answers.
        silent: partitions whose leader does not answer.
        newest: the newest timestamp (ms) of partitions that have one.
        brokers, registered: how many brokers are up; how many are registered, up or down.
        refuses: the errors for topics that the cluster refuses to create, by name.
        open_at: the last stable offset of partitions with open transactions.
        asked: the number of calls, by method.
        made: the topics that it created through `try_create_topics`, in order.
    """

    def __init__(self, alias: str, topics: Mapping[str, Sequence[int]] | None = None) -> None:
        """`topics` has partitions' end offsets, by topic. The cluster's id is `id-of-<alias>`."""
        self.alias = alias
        self.ends: dict[str, list[int]] = {}
        self.starts: dict[TopicAndPartition, int] = {}
        self.refusal: ClusterUnusable | None = None
        self.silent: set[TopicAndPartition] = set()
        self.newest: dict[TopicAndPartition, int] = {}
        self.brokers = self.registered = 1
        self.refuses: dict[str, TargetRefused] = {}
        self.open_at: dict[TopicAndPartition, int] = {}
        self.asked: Counter[str] = Counter()
        self.made: list[TopicInfo] = []
        self._ids: dict[str, str] = {}
        for name, ends in (topics or {}).items():
            self.make(name, *ends)

    def make(self, topic: str, *ends: int) -> str:
        """Create or recreate a topic with these ends of its partitions; return its new id."""
        self.ends[topic] = list(ends)
        self._ids[topic] = uuid.uuid4().hex
        return self._ids[topic]

    def delete(self, *topics: str) -> None:
        """Delete topics."""
        for topic in topics:
            del self.ends[topic], self._ids[topic]

    @property
    def address(self) -> str:
        """A placeholder for messages: there is no address."""
        return f"memory:{self.alias}"

    @property
    def client(self) -> AdminClient:
        """Raises NotImplementedError: direct use of the client needs a broker."""
        raise NotImplementedError(
            f"cluster {self.alias} is one in memory, which has topics and offsets only"
        )

    def cluster_id(self) -> str:
        """The cluster's id, `id-of-<alias>`."""
        self._ask("cluster_id")
        return f"id-of-{self.alias}"

    def known_brokers(self) -> int:
        """How many brokers are up."""
        self._ask("known_brokers")
        return self.brokers

    def addresses(self) -> list[tuple[str, int]]:
        """No addresses: there are no brokers."""
        self._ask("addresses")
        return []

    def registered_brokers(self, name: str, asked: int) -> int:
        """How many brokers can hold replicas of a new topic, up to `asked`."""
        self._ask("registered_brokers")
        return min(asked, max(self.brokers, self.registered))

    def topics(self) -> dict[str, TopicInfo]:
        """All topics by name, with replication factor 1."""
        self._ask("topics")
        return {name: TopicInfo(name, len(ends), 1) for name, ends in self.ends.items()}

    def _identities(
        self, topics: Sequence[str]
    ) -> tuple[dict[str, TopicIdentity], frozenset[str], Mapping[str, str]]:
        self._ask("identities")
        identities = {
            name: TopicIdentity(self._ids[name], len(self.ends[name]))
            for name in topics
            if name in self._ids
        }
        return identities, frozenset(topics) - identities.keys(), {}

    def start_offsets(
        self, partitions: Iterable[TopicAndPartition], skip_silent: bool = False
    ) -> dict[TopicAndPartition, int]:
        """First offsets; `skip_silent` leaves out partitions that are missing or do not answer."""
        self._ask("start_offsets")
        if skip_silent:
            return {key: self.starts.get(key, 0) for key in partitions if self._tells(key)}
        return {
            (topic, number): self.starts.get((topic, number), 0) for topic, number in partitions
        }

    def end_offsets(
        self,
        partitions: Iterable[TopicAndPartition],
        committed: bool = True,
        skip_silent: bool = False,
    ) -> dict[TopicAndPartition, int]:
        """End offsets, with `committed` up to `open_at`; `skip_silent` as in `start_offsets`.
        Raises KeyError for a topic that does not exist."""
        self._ask("end_offsets")
        keys = [key for key in partitions if not skip_silent or self._tells(key)]
        ends = {key: self.ends[key[0]][key[1]] for key in keys}
        if not committed:
            return ends
        return {key: min(end, self.open_at.get(key, end)) for key, end in ends.items()}

    def leaders(
        self, _partitions: Iterable[TopicAndPartition]
    ) -> dict[tuple[str, int], list[TopicAndPartition]]:
        """No leaders: there are no brokers to connect to."""
        self._ask("leaders")
        return {}

    def log_ends(
        self, partitions: Collection[TopicAndPartition]
    ) -> dict[TopicAndPartition, LogEnds]:
        """Start and end of the partitions whose leader answers, without a leader epoch."""
        self._ask("log_ends")
        ends = {key: self.ends[key[0]][key[1]] for key in partitions if self._tells(key)}
        return {key: LogEnds(self.starts.get(key, 0), end) for key, end in ends.items()}

    def high_watermarks(
        self, partitions: Collection[TopicAndPartition]
    ) -> dict[TopicAndPartition, LogEnd]:
        """Only the ends of the partitions whose leader answers."""
        self._ask("high_watermarks")
        return {key: LogEnd(self.ends[key[0]][key[1]]) for key in partitions if self._tells(key)}

    def written_since(
        self, partitions: Collection[TopicAndPartition], at_ms: int
    ) -> dict[TopicAndPartition, bool]:
        """Whether partitions whose leader answers have such a timestamp in `newest`."""
        self._ask("written_since")
        return {key: self.newest.get(key, -1) >= at_ms for key in partitions if self._tells(key)}

    def try_create_topics(
        self, topics: Sequence[TopicInfo], not_kept: NotKept | None = None
    ) -> list[TargetRefused]:
        """Create topics that do not exist yet; return the errors of those that it `refuses`."""
        self._ask("try_create_topics")
        for topic in topics:
            if topic.name not in self.refuses and topic.name not in self.ends:
                self.make(topic.name, *[0] * topic.partitions)
                self.made.append(topic)
        return [self.refuses[topic.name] for topic in topics if topic.name in self.refuses]

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Raise a topic's partition count. Raises TargetRefused."""
        self._ask("add_partitions")
        if topic in self.refuses:
            raise self.refuses[topic]
        self.ends[topic] += [0] * (partitions - len(self.ends[topic]))

    def _ask(self, method: str) -> None:
        self.asked[method] += 1
        if self.refusal is not None:
            raise self.refusal

    def _tells(self, key: TopicAndPartition) -> bool:
        return key not in self.silent and key[1] < len(self.ends.get(key[0], ()))
