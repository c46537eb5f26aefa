"""The exceptions of mirrorlake, one small tree.

    MirrorlakeError                   exit code 1
    ├── InputError                    exit code 2: wrong input; an unusable cluster or lake
    │   ├── TopologyError             the topology file is invalid, or must not be run
    │   ├── ClusterUnusable           a cluster cannot be used now, whatever the reason
    │   │   ├── ClusterUnreachable    no broker of it answered in time
    │   │   └── AuthenticationFailed  a server refused our login, or is not trusted
    │   ├── LakeError                 the lake cannot be read or written
    │   ├── UnknownOffset             a flow, topic or partition that the map has never seen
    │   ├── MissingJava               no Java runtime that Spark and Kafka can use
    │   └── MissingExtra              a library that one part needs is not installed
    ├── PlanOutdated                  a task was planned before another process fenced it
    └── ReplicationError              the replication needs an operator
        ├── StagingError              a record of the source cannot be staged
        ├── SourceDataLost            records vanished from the source before they were staged
        ├── TargetRefused             the target cluster refused a write
        │   ├── TopicRefused          the target accepts no record of a topic
        │   ├── TargetRecreated       the target topic is not the one that the map knows
        │   ├── TargetLost            the target lost acknowledged records
        │   ├── PositionLost          the flow's committed position at the target is gone
        │   ├── MapBehind             the lake is older than the target, and catches up
        │   └── MapUnknown            the target's records that the lake lacks cannot be located
        ├── StageTrimmed              retention deleted staged records that a flow had not produced
        ├── ContentDiffers            source, stage and target do not hold the same records
        ├── LayoutError               offsets in a staged file do not rise
        ├── FilesUnreadable           workers cannot open files of the stage directly
        ├── LeaseTaken                another process does this already
        ├── Fenced                    another process took over this one's work
        └── MapError                  stage, map and target positions contradict each other
            └── CountDiffers          a reader returned more or fewer records than planned

Each message is one sentence: what is wrong, where, and what to do. Code reads attributes, never the
message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

if TYPE_CHECKING:  # in typing from Python 3.11 on
    from typing_extensions import Self, Unpack


class MirrorlakeError(Exception):
    """Root of everything that mirrorlake raises on purpose. `exit_code` is the exit code of the
    command line, `incident_kind` the kind of incident if a flow stops with this error."""

    exit_code: ClassVar[int] = 1
    incident_kind: ClassVar[str] = "flow_stopped"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by message and attributes: the default calls the class with the message alone,
        which fails if it requires an attribute."""
        return (type(self).from_facts, (self.__dict__,))

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Build the exception from its attributes, as `vars` returns them; `message` is one."""
        error = cls.__new__(cls, facts["message"])
        error.args = (facts["message"],)  # a subclass of OSError sets args in __init__, not before
        error.__dict__.update(facts)
        return error


class InputError(MirrorlakeError):
    """Raised when the user must first change a file or a flag, or make a cluster or lake usable."""

    exit_code: ClassVar[int] = 2


class TopologyError(InputError):
    """Raised when the topology file is unreadable, invalid, or describes what must not run."""


class ClusterUnusable(InputError):
    """Raised when a cluster cannot be used now. `alias` is its name in the topology file."""

    def __init__(self, message: str, *, alias: str) -> None:
        super().__init__(message)
        self.alias = alias


class ClusterUnreachable(ClusterUnusable):
    """Raised when no broker of a cluster answered within the time allowed."""


class AuthenticationFailed(ClusterUnusable):
    """Raised when a cluster's server refuses our login, or its certificate is not trusted."""


class LakeError(InputError):
    """Raised when a lake cannot be opened: not writable, not a lake, or of a newer version."""


class UnknownOffset(InputError):
    """Raised when a flow, topic or partition has never been seen by the offset map."""


class MissingJava(InputError):
    """Raised when no Java 17 or newer is there to start Spark and Kafka."""


class MissingExtra(InputError):
    """Raised when a library of only one part is not installed: `library` of `extra` (extras.py)."""

    def __init__(self, message: str, *, extra: str, library: str) -> None:
        super().__init__(message)
        self.extra = extra
        self.library = library


class Where(TypedDict, total=False):
    """The place of an error within a topic, as columns of `incidents`: a range of source offsets
    (inclusive) and the generation of the source topic; and at the target an offset, the topic's
    generation, and its name where the flow may have written to several."""

    partition: int | None
    first_offset: int | None
    last_offset: int | None
    generation: int | None
    target_generation: int | None
    target_offset: int | None
    target_topic: str | None


class ReplicationError(MirrorlakeError):
    """Raised when replication stopped and an operator has to decide how to go on.

    If the error concerns one topic, its attributes are columns of `incidents`: see `Where`.
    """

    topic: str | None

    def __init__(self, message: str, *, topic: str | None = None, **where: Unpack[Where]) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = where.get("partition")
        self.first_offset = where.get("first_offset")
        self.last_offset = where.get("last_offset")
        self.generation = where.get("generation")
        self.target_generation = where.get("target_generation")
        self.target_offset = where.get("target_offset")
        self.target_topic = where.get("target_topic")


class StagingError(ReplicationError):
    """Raised when the source record at `first_offset` cannot be a row of `records`."""


class SourceDataLost(ReplicationError):
    """Raised when source records were gone before they were staged (retention, a recreated topic).
    The incident's kind is the kind of loss: `landing.source_comparison.LossKind`."""


class TargetRefused(ReplicationError):
    """Raised when the target refused records, or a change of a topic. `topic` is the source topic
    for records, else the target topic; `reason` is Kafka's name of the error, None if the refusal
    was not Kafka's."""

    incident_kind: ClassVar[str] = "target_refused"
    topic: str

    def __init__(
        self, message: str, *, topic: str, reason: str | None = None, **where: Unpack[Where]
    ) -> None:
        super().__init__(message, topic=topic, **where)
        self.reason = reason

    @property
    def topic_partition(self) -> tuple[str, int]:
        """The source partition of refused records. Raises ValueError if the whole topic was."""
        if self.partition is None:
            raise ValueError(f"not about one partition: {self.message}")
        return self.topic, self.partition


class TopicRefused(TargetRefused):
    """Raised when the target accepts no record of a topic, which is missing, or lacks a right."""

    incident_kind: ClassVar[str] = "topic_refused"


class TargetRecreated(TargetRefused):
    """Raised when a target topic's log is shorter than the map says: the topic was recreated."""

    incident_kind: ClassVar[str] = "target_recreated"


class TargetLost(TargetRefused):
    """Raised when a target partition lost records that it had acknowledged: all from
    `target_offset` on. `topic`, `partition` and the offsets are those of the lost records at the
    source, by the map."""

    incident_kind: ClassVar[str] = "target_lost"
    target_offset: int


class PositionLost(TargetRefused):
    """Raised when the flow's position is gone, and the target has records that may be its own."""

    incident_kind: ClassVar[str] = "position_lost"


class MapBehind(TargetRefused):
    """Reported when the target has records of the flow whose offsets are neither in the map nor in
    the metadata of the committed position: the lake is older than the target. The partition resumes
    by itself once the stage has all records up to `last_offset`, usually within moments. All that
    the flow has written so far lies below `target_offset`."""

    incident_kind: ClassVar[str] = "map_behind"


class MapUnknown(TargetRefused):
    """Raised when content does not locate such records either (`MapBehind`); the offsets name
    them."""

    incident_kind: ClassVar[str] = "map_unknown"


class StageTrimmed(ReplicationError):
    """Raised when retention deleted staged records that a flow had not produced yet."""

    incident_kind: ClassVar[str] = "stage_trimmed"


class ContentDiffers(ReplicationError):
    """Reported for a difference found by a comparison by content (`verify`)."""

    incident_kind: ClassVar[str] = "content_differs"


class LayoutError(ReplicationError):
    """Raised by a produce task for offsets out of order in a file; rows are then sorted."""


class FilesUnreadable(ReplicationError):
    """Raised when Spark's workers cannot open the stage's files; Spark then reads them."""


class PlanOutdated(MirrorlakeError):
    """Raised by a produce task that was planned before another process fenced its transactional id;
    the task writes nothing. Its planner starts over, fetches the newest token, and goes on if it
    still holds the flow's lease."""


class LeaseTaken(ReplicationError):
    """Raised when another process lands this cluster or produces this flow."""


class Fenced(ReplicationError):
    """Raised when another process took over this one's work while it was suspended or cut off:
    nothing that it still has in flight is accepted, and it must end."""

    incident_kind: ClassVar[str] = "fenced"


class MapError(ReplicationError):
    """Raised when stage, offset map and target positions contradict each other; writing more would
    break the map."""

    incident_kind: ClassVar[str] = "map_contradiction"


class CountDiffers(MapError):
    """Raised when a reader returned more or fewer records than indexed; they are read again."""


def text_of(error: BaseException | None) -> str:
    """Return an error's text, or its class' name if it has none or `str` fails. Never raises."""
    if error is None:
        return "unknown error"
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - reporting an error must not fail because of its text
        text = ""
    return text or type(error).__name__


def some_of(names: Sequence[str], most: int, rest: str = " and {} more") -> str:
    """Join the first `most` names for a sentence; of more, append the number, as `rest` has it."""
    more = len(names) - most
    return ", ".join(names[:most]) + (rest.format(more) if more > 0 else "")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, for a sentence: engines and clients add pages."""
    return text_of(error).splitlines()[0]
