"""An in-memory Kafka cluster, and clients of it, as far as replication can tell them from real
ones.

`Producer` and `Consumer` take the place of confluent_kafka's in `produce/`. Kept from the real
thing: control markers and aborted records take offsets; a transaction makes records and group
positions visible together; whoever initialises a transactional id fences the one before and ends
what it left open; positions of an open transaction are not stable; positions vanish with their
topic, or expire; a topic made again has another id and begins at 0.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, KafkaException, TopicPartition

from mirrorlake.offsets.positions import TopicAndPartition
from tests.simulation.steps import Steps

Header = tuple[str, bytes | None]
#: Records whose value begins like this are larger than a target takes: it refuses their batch as a
#: whole.
TOO_LARGE = b"large:"
#: Those that a target refuses by themselves, and says so of the record (KIP-467).
ODD = b"odd:"
#: What a delivery report may say of a batch that is no fault of its records: the cluster's, ours,
#: or the producer's.
OTHERS_FAULTS = (
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError._MSG_TIMED_OUT,
    KafkaError.INVALID_REQUIRED_ACKS,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
)
#: Of these the batch may be in the log.
_APPENDED = (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, KafkaError._MSG_TIMED_OUT)


def failed(code: int, text: str, fatal: bool = False) -> KafkaException:
    """What a client raises."""
    return KafkaException(KafkaError(code, text, fatal, not fatal, False))


def abortable(code: int, text: str) -> KafkaError:
    """What fails a transaction."""
    return KafkaError(code, text, False, False, True)


def timed_out() -> Exception:
    """What a call raises whose answer was lost."""
    return failed(KafkaError._TIMED_OUT, "no answer in time")


@dataclass
class Transaction:
    """One transaction: `state` is open, committed or aborted."""

    state: str = "open"
    logs: "list[Log]" = field(default_factory=list)
    positions: dict[tuple[str, TopicAndPartition], tuple[int, str]] = field(default_factory=dict)


@dataclass
class Entry:
    """What takes one offset: a record, or a control marker (`value` and `key` mean nothing)."""

    value: bytes | None = None
    key: bytes | None = None
    timestamp: int = 0
    headers: tuple[Header, ...] = ()
    transaction: Transaction | None = None
    marker: bool = False
    gone: bool = False
    epoch: int = 0

    @property
    def visible(self) -> bool:
        """Whether a read_committed consumer sees it."""
        return not (self.marker or self.gone) and (
            self.transaction is None or self.transaction.state == "committed"
        )


class Log:
    """One partition: the offset of an entry is its index; what lies below `start` cannot be read
    any more."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.start = 0
        self.epoch = 0
        self.epoch_starts: list[tuple[int, int]] = [(0, 0)]

    @property
    def end(self) -> int:
        """The offset that the next record gets."""
        return len(self.entries)

    @property
    def stable(self) -> int:
        """The end for readers of committed records: the first offset of an open transaction."""
        for offset in range(self.start, len(self.entries)):
            transaction = self.entries[offset].transaction
            if transaction is not None and transaction.state == "open":
                return offset
        return len(self.entries)

    def append(self, entry: Entry) -> int:
        """Add an entry; returns its offset."""
        entry.epoch = self.epoch
        self.entries.append(entry)
        if (
            entry.transaction is not None
            and not entry.marker
            and self not in entry.transaction.logs
        ):
            entry.transaction.logs.append(self)
        return len(self.entries) - 1

    def read(self, first: int, end: int) -> Iterator[tuple[int, Entry]]:
        """Committed records from `first` to below `end`."""
        for offset in range(max(first, self.start), min(end, self.stable)):
            if self.entries[offset].visible:
                yield offset, self.entries[offset]

    def rewind(self, end: int) -> None:
        """Lose the newest entries, as by an unclean election: a new leader epoch begins at
        `end`."""
        del self.entries[end:]
        self.start = min(self.start, end)
        self.epoch += 1
        self.epoch_starts.append((self.epoch, end))


@dataclass
class Topic:
    """A topic of one id."""

    name: str
    topic_id: str
    logs: list[Log]


class Cluster:
    """The brokers of one cluster."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.topics: dict[str, Topic] = {}
        self.positions: dict[tuple[str, TopicAndPartition], tuple[int, str]] = {}
        self._ids = itertools.count(1)
        #: Topics that may not be written.
        self.denied: set[str] = set()
        #: Transactional ids that the coordinator has forgotten, until somebody initialises them.
        self.forgotten: set[str] = set()
        #: What the next batches of records are answered with, one each.
        self.answers: list[int] = []
        self._epochs: dict[str, int] = {}
        self._open: dict[str, Transaction] = {}

    def create(self, name: str, partitions: int) -> Topic:
        """Make a topic."""
        topic = Topic(
            name, f"{self.name}-{name}-{next(self._ids)}", [Log() for _ in range(partitions)]
        )
        self.topics[name] = topic
        return topic

    def delete(self, name: str) -> None:
        """Delete a topic; the brokers forget the groups' positions in it."""
        del self.topics[name]
        for place in [place for place in self.positions if place[1][0] == name]:
            del self.positions[place]

    def log(self, topic: str, partition: int) -> Log | None:
        """A partition's log, None when there is none."""
        found = self.topics.get(topic)
        return found.logs[partition] if found is not None and partition < len(found.logs) else None

    def expire(self, group: str | None = None) -> None:
        """Forget positions, as a broker does with those of a group that was idle for
        `offsets.retention.minutes`."""
        for place in [place for place in self.positions if group in (None, place[0])]:
            del self.positions[place]

    def begin(self, transactional_id: str) -> int:
        """A producer's `init_transactions`: ends what is open, fences the one before, and returns
        the new epoch."""
        self.end(transactional_id, "aborted")
        self.forgotten.discard(transactional_id)
        self._epochs[transactional_id] = self._epochs.get(transactional_id, -1) + 1
        return self._epochs[transactional_id]

    def is_current(self, transactional_id: str, epoch: int) -> bool:
        """Whether a producer of this epoch may still write."""
        return self._epochs.get(transactional_id) == epoch

    def is_open(self, transactional_id: str) -> bool:
        """Whether anything was added to a transaction of an id."""
        return transactional_id in self._open

    def opened(self, transactional_id: str) -> Transaction:
        """The open transaction of an id; a new one if there is none."""
        return self._open.setdefault(transactional_id, Transaction())

    def end(self, transactional_id: str, state: str) -> None:
        """Commit or abort: a marker in each log, positions with it."""
        transaction = self._open.pop(transactional_id, None)
        if transaction is None:
            return
        transaction.state = state
        for log in transaction.logs:
            log.append(Entry(transaction=transaction, marker=True))
        if state == "committed":
            living = {
                place: at
                for place, at in transaction.positions.items()
                if self.log(*place[1]) is not None
            }
            self.positions.update(living)

    def time_out(self) -> None:
        """Transactions that nobody has ended for `transaction.timeout.ms` are aborted and their
        producers fenced."""
        for name in list(self._open):
            self.end(name, "aborted")
            self._epochs[name] += 1

    def forget_producers(self) -> None:
        """Transactional ids are forgotten that were idle for `transactional.id.expiration.ms`."""
        self.forgotten |= self._epochs.keys() - self._open.keys()

    def unstable(self, group: str) -> set[TopicAndPartition]:
        """Partitions with positions of a group in an open transaction."""
        return {
            place[1]
            for open_ in self._open.values()
            for place in open_.positions
            if place[0] == group
        }


class Message:
    """What a delivery callback or a consumer gets; without an entry the end of the partition."""

    def __init__(self, topic: str, partition: int, offset: int, entry: Entry | None = None) -> None:
        self._place = (topic, partition, offset)
        self._entry = entry

    def error(self) -> KafkaError | None:
        return None if self._entry is not None else KafkaError(KafkaError._PARTITION_EOF, "the end")

    def key(self) -> bytes | None:
        return None if self._entry is None else self._entry.key

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 0 if self._entry is None else self._entry.timestamp

    def value(self) -> bytes | None:
        return None if self._entry is None else self._entry.value

    def headers(self) -> list[Header] | None:
        return None if self._entry is None else list(self._entry.headers) or None

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._place[2]


Callback = Callable[[KafkaError | None, Message], None]


class Producer:
    """A transactional producer; what is sent reaches the log with `flush`."""

    def __init__(self, cluster: Cluster, steps: Steps, settings: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._steps = steps
        self._id = str(settings["transactional.id"])
        self._epoch = -1
        self._queue: list[tuple[TopicAndPartition, Entry, Callback | None]] = []
        #: What failed the open transaction first: it can only be aborted then, and nothing more is
        #: sent.
        self._refused: KafkaError | None = None

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> None:
        """Asks for metadata; nothing of it is used."""
        self._step("list_topics")

    def init_transactions(self, timeout: float = -1) -> None:
        self._step("init_transactions")
        self._epoch = self._cluster.begin(self._id)
        self._step("initialised")

    def begin_transaction(self) -> None:
        self._check()
        self._check_refused()

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        callback: Callback | None = None,
        on_delivery: Callback | None = None,
        timestamp: int = 0,
        headers: Sequence[Header] | None = None,
    ) -> None:
        if self._refused is not None:
            raise failed(KafkaError._STATE, "producing is not allowed in a failed transaction")
        if self._cluster.log(topic, partition) is None:
            raise failed(KafkaError._UNKNOWN_PARTITION, f"{topic}-{partition} is not there")
        entry = Entry(value, key, timestamp, tuple(headers or ()))
        self._queue.append(((topic, partition), entry, callback or on_delivery))

    def poll(self, timeout: float = -1) -> int:
        return self.flush()

    def flush(self, timeout: float = -1) -> int:
        queue, self._queue = self._queue, []
        if queue and self._refused is None and self._cluster.is_current(self._id, self._epoch):
            self._refused = self._add_partitions({place[0] for place, _, _ in queue})
        for place, batch in itertools.groupby(queue, key=lambda item: item[0]):
            items = [(entry, callback) for _, entry, callback in batch]
            refused = _refused([entry for entry, _ in items])
            if self._refused is not None:
                refused = [KafkaError(KafkaError._PURGE_QUEUE, "purged")] * len(items)
            elif self._cluster.answers:
                fault = KafkaError(self._cluster.answers.pop(0), "no fault of a record")
                refused = [fault] * len(items)
            for (entry, callback), error in zip(items, refused, strict=True):
                self._deliver(*place, entry, callback, error)
        return 0

    def _add_partitions(self, topics: Iterable[str] = ()) -> KafkaError | None:
        """Why the coordinator does not add partitions of topics to the transaction."""
        if self._id in self._cluster.forgotten:
            return abortable(
                KafkaError.INVALID_PRODUCER_ID_MAPPING, "nobody has this transactional id"
            )
        if self._cluster.denied.intersection(topics):
            return abortable(
                KafkaError.TOPIC_AUTHORIZATION_FAILED, "a partition could not be added"
            )
        return None

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        self._queue.clear()

    def __len__(self) -> int:
        return len(self._queue)

    def _deliver(
        self,
        topic: str,
        partition: int,
        entry: Entry,
        callback: Callback | None,
        refused: KafkaError | None,
    ) -> None:
        log = self._cluster.log(topic, partition)

        def foreign() -> None:
            if log is not None:
                log.append(Entry(b"foreign"))

        error = refused
        if error is None:
            self._step("append", foreign)
        if not self._cluster.is_current(self._id, self._epoch):
            error = KafkaError(
                KafkaError._FENCED, "another producer has this transactional id", True, False, False
            )
        elif log is None:
            error = KafkaError(
                KafkaError.UNKNOWN_TOPIC_OR_PART, "the topic is gone", False, True, False
            )
        if self._refused is None and error is not None:
            self._refused = error if error.fatal() else abortable(_blamed(error), error.str())
        offset = -1
        is_there = error is None or error.code() in _APPENDED
        if is_there and log is not None:
            entry.transaction = self._cluster.opened(self._id)
            offset = log.append(entry)
        if callback is not None:
            callback(error, Message(topic, partition, offset))

    def send_offsets_to_transaction(
        self, positions: Sequence[TopicPartition], group: "GroupMetadata", timeout: float = -1
    ) -> None:
        self._step("send_offsets")
        self._check()
        self._refused = self._refused or self._add_partitions()
        self._check_refused()
        transaction = self._cluster.opened(self._id)
        for item in positions:
            transaction.positions[group.group_id, (item.topic, item.partition)] = (
                item.offset,
                item.metadata or "",
            )

    def commit_transaction(self, timeout: float = -1) -> None:
        self.flush()
        self._step("commit")
        self._check()
        self._check_refused()
        self._cluster.end(self._id, "committed")
        self._step("committed")

    def abort_transaction(self, timeout: float = -1) -> None:
        self._queue.clear()
        self._step("abort")
        self._check()
        code = None if self._refused is None else self._refused.code()
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED and not self._cluster.is_open(self._id):
            raise KafkaException(
                abortable(KafkaError.INVALID_TXN_STATE, "the coordinator has no transaction to end")
            )
        self._cluster.end(self._id, "aborted")
        self._refused = None

    def _check_refused(self) -> None:
        if self._refused is not None:
            raise KafkaException(self._refused)

    def _check(self) -> None:
        if not self._cluster.is_current(self._id, self._epoch):
            raise failed(
                KafkaError._FENCED, "another producer has this transactional id", fatal=True
            )

    def _step(self, name: str, foreign: Callable[[], None] | None = None) -> None:
        self._steps.reach(f"{self._id} {name}", timed_out, foreign)


def _refused(batch: Sequence[Entry]) -> list[KafkaError | None]:
    """What becomes of the records of a batch: none is taken where one is refused."""
    values = [entry.value or b"" for entry in batch]
    if any(value.startswith(TOO_LARGE) for value in values):
        return [KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")] * len(batch)
    if any(value.startswith(ODD) for value in values):
        odd, other = (
            KafkaError(KafkaError.INVALID_TIMESTAMP),
            KafkaError(KafkaError._INVALID_DIFFERENT_RECORD),
        )
        return [odd if value.startswith(ODD) else other for value in values]
    return [None] * len(batch)


def _blamed(error: KafkaError) -> int:
    """What fails a transaction where a record's error is this."""
    code = int(error.code())
    return (
        int(KafkaError.INVALID_TIMESTAMP) if code == KafkaError._INVALID_DIFFERENT_RECORD else code
    )


@dataclass(frozen=True)
class GroupMetadata:
    """What `send_offsets_to_transaction` wants of a consumer."""

    group_id: str


class Consumer:
    """A consumer that never subscribes: it is asked for positions and ends."""

    def __init__(self, cluster: Cluster, steps: Steps, settings: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._steps = steps
        self._group = str(settings["group.id"])
        self._committed = settings.get("isolation.level") != "read_uncommitted"
        self._read: list[Message] = []

    def committed(
        self, partitions: Sequence[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        self._steps.reach("committed positions", timed_out)
        if self._cluster.unstable(self._group) & {
            (item.topic, item.partition) for item in partitions
        }:
            raise failed(KafkaError._TIMED_OUT, "positions are still being committed")
        found = []
        for item in partitions:
            at = self._cluster.positions.get((self._group, (item.topic, item.partition)))
            offset, metadata = at if at is not None else (-1001, "")
            found.append(TopicPartition(item.topic, item.partition, offset, metadata))
        return found

    def commit(self, offsets: Sequence[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        self._steps.reach("commit positions", timed_out)
        for item in offsets:
            self._cluster.positions[self._group, (item.topic, item.partition)] = (
                item.offset,
                item.metadata or "",
            )
        self._steps.reach("positions committed", timed_out)
        return list(offsets)

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        self._steps.reach("watermarks", timed_out)
        log = self._cluster.log(partition.topic, partition.partition)
        if log is None:
            raise failed(
                KafkaError._UNKNOWN_PARTITION,
                f"{partition.topic}-{partition.partition} is not there",
            )
        return log.start, log.stable if self._committed else log.end

    def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        left = {(item.topic, item.partition) for item in partitions}
        self._read = [
            message for message in self._read if (message.topic(), message.partition()) not in left
        ]

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        for item in partitions:
            log = self._cluster.log(item.topic, item.partition)
            for offset, entry in () if log is None else log.read(item.offset, log.stable):
                self._read.append(Message(item.topic, item.partition, offset, entry))
            self._read.append(
                Message(item.topic, item.partition, 0 if log is None else log.stable, None)
            )

    def consume(self, num_messages: int = 1, timeout: float = -1) -> "list[Message]":
        self._steps.reach("consume", timed_out)
        taken, self._read = self._read[:num_messages], self._read[num_messages:]
        return taken

    def consumer_group_metadata(self) -> GroupMetadata:
        return GroupMetadata(self._group)

    def close(self) -> None:
        pass
