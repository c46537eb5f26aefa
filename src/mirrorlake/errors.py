"""The exceptions of mirrorlake, one small tree.

    MirrorlakeError                   exit code 1
    ├── InputError                    exit code 2: wrong input; an unusable cluster or lake
    │   ├── TopologyError             the topology file does not say something that can be run
    │   ├── ClusterUnusable           a cluster cannot be used now, whatever the reason
    │   │   ├── ClusterUnreachable    no broker of it answered in time
    │   │   └── AuthenticationFailed  a server refused us, or is not trusted
    │   ├── LakeError                 the lake cannot be read or written
    │   ├── UnknownOffset             a flow, topic or partition that the map has never seen
    │   ├── MissingJava               no Java runtime that Spark and Kafka can use
    │   └── MissingExtra              a library that one part needs is not installed
    ├── PlanOutdated                  planned before another process fenced us
    └── ReplicationError              the replication itself is in a state that needs an operator
        ├── StagingError              a record of the source cannot be staged
        ├── SourceDataLost            records vanished from the source before they were staged
        ├── TargetRefused             the target cluster refused a write
        │   ├── TopicRefused          the target takes nothing of a topic
        │   ├── TargetRecreated       the target topic is another one than the map knows
        │   ├── TargetLost            the target lost acknowledged records
        │   ├── PositionLost          the target does not say any more how far the flow is
        │   ├── MapBehind             the lake is older than the target, and lands what it lacks
        │   └── MapUnknown            where the target has what an older lake lacks is not known
        ├── StageTrimmed              retention deleted staged records that a flow has not produced
        ├── ContentDiffers            source, stage and target do not hold the same records
        ├── LayoutError               offsets in a staged file do not rise
        ├── FilesUnreadable           workers cannot open files of the stage themselves
        ├── LeaseTaken                another process does this already
        ├── Fenced                    another process took this over while it went on here
        └── MapError                  stage, map and target's positions contradict
            └── CountDiffers          other number of staged records than planned

Each reads as one sentence: what is wrong, where, and what to do. What code goes by is an attribute,
never the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

if TYPE_CHECKING:  # in typing from Python 3.11 on
    from typing_extensions import Self, Unpack


class MirrorlakeError(Exception):
    """Root of everything that mirrorlake raises on purpose. `exit_code` is what the command line
    ends with, `incident_kind` the kind of incident where a flow stops for it."""

    exit_code: ClassVar[int] = 1
    incident_kind: ClassVar[str] = "flow_stopped"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by message and attributes: an exception's own way calls the class with the message
        alone, which does for none that needs an attribute."""
        return (type(self).from_facts, (self.__dict__,))

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The exception with these attributes, as `vars` gives them; `message` is one."""
        error = cls.__new__(cls, facts["message"])
        error.args = (facts["message"],)  # which one that is an OSError too takes when it is made
        error.__dict__.update(facts)
        return error


class InputError(MirrorlakeError):
    """Raised when the user has to change a file or a flag, or to make a cluster or lake usable,
    before it can go on."""

    exit_code: ClassVar[int] = 2


class TopologyError(InputError):
    """Raised when the topology file is unreadable, invalid, or describes something that must not
    run."""


class ClusterUnusable(InputError):
    """Raised when a cluster cannot be used now. `alias` is its name in the topology file."""

    def __init__(self, message: str, *, alias: str) -> None:
        super().__init__(message)
        self.alias = alias


class ClusterUnreachable(ClusterUnusable):
    """Raised when no broker of a cluster answered within the time allowed."""


class AuthenticationFailed(ClusterUnusable):
    """Raised when the server that answers in a cluster's name refuses us, or is not trusted."""


class LakeError(InputError):
    """Raised when the lake cannot be opened: not writable, not a lake, or written by a newer
    version."""


class UnknownOffset(InputError):
    """Raised when a flow, topic or partition has never been seen by the offset map."""


class MissingJava(InputError):
    """Raised when there is no Java 17 or newer to start Spark and Kafka with."""


class MissingExtra(InputError):
    """Raised when a library is not installed that only a part of mirrorlake needs: `library` of
    `extra` (extras.py)."""

    def __init__(self, message: str, *, extra: str, library: str) -> None:
        super().__init__(message)
        self.extra = extra
        self.library = library


class Where(TypedDict, total=False):
    """What an error is about within a topic, as columns of `incidents`: range of source offsets,
    inclusive, the generation of the source topic that these are of, the target topic where a flow
    may have written to others, its generation, and an offset there."""

    partition: int | None
    first_offset: int | None
    last_offset: int | None
    generation: int | None
    target_generation: int | None
    target_offset: int | None
    target_topic: str | None


class ReplicationError(MirrorlakeError):
    """Raised when replication stopped for a reason that an operator has to decide about.

    The attributes are columns of `incidents`, as far as it is about one topic: see `Where`.
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
    """Raised when a record of the source cannot be a row of `records`; it is at `first_offset`."""


class SourceDataLost(ReplicationError):
    """Raised when source records were gone before they were staged (retention, a recreated topic).
    Its incident is of the kind of the loss: `landing.source_comparison.LossKind`."""


class TargetRefused(ReplicationError):
    """Raised when the target refused records, or a change of a topic. `topic` is the source's for
    records, else the target's; `reason` is Kafka's name of the error, None where Kafka did not
    refuse."""

    incident_kind: ClassVar[str] = "target_refused"
    topic: str

    def __init__(
        self, message: str, *, topic: str, reason: str | None = None, **where: Unpack[Where]
    ) -> None:
        super().__init__(message, topic=topic, **where)
        self.reason = reason

    @property
    def topic_partition(self) -> tuple[str, int]:
        """The source partition whose records were refused. Raises ValueError where a whole topic
        was."""
        if self.partition is None:
            raise ValueError(f"not about one partition: {self.message}")
        return self.topic, self.partition


class TopicRefused(TargetRefused):
    """Raised when the target takes no record of a topic, whatever it holds: a right is missing, or
    the topic is."""

    incident_kind: ClassVar[str] = "topic_refused"


class TargetRecreated(TargetRefused):
    """Raised when a target topic's log is shorter than what the map says was written to it: it was
    made again."""

    incident_kind: ClassVar[str] = "target_recreated"


class TargetLost(TargetRefused):
    """Raised when a target partition has lost records that it had acknowledged: all from
    `target_offset` on. Topic, partition and offsets are the source's, of the records that the map
    had there."""

    incident_kind: ClassVar[str] = "target_lost"
    target_offset: int


class PositionLost(TargetRefused):
    """Raised when the flow's committed position is gone and the target holds records that may be
    the flow's own."""

    incident_kind: ClassVar[str] = "position_lost"


class MapBehind(TargetRefused):
    """Reported when the target has records of the flow of which neither the map nor the metadata of
    its position says where they are: the lake is older than the target. The partition goes on by
    itself once the stage has all up to `last_offset`, within moments as a rule. What the flow wrote
    until now is below `target_offset`."""

    incident_kind: ClassVar[str] = "map_behind"


class MapUnknown(TargetRefused):
    """Raised when their content does not say it either, of those that the offsets name."""

    incident_kind: ClassVar[str] = "map_unknown"


class StageTrimmed(ReplicationError):
    """Raised when retention deleted staged records that a flow lacks."""

    incident_kind: ClassVar[str] = "stage_trimmed"


class ContentDiffers(ReplicationError):
    """Reported for a difference that a comparison by content shows."""

    incident_kind: ClassVar[str] = "content_differs"


class LayoutError(ReplicationError):
    """Raised by a produce task that finds offsets out of order in a file; the driver then reads
    sorted."""


class FilesUnreadable(ReplicationError):
    """Raised when workers cannot open files of the stage themselves; Spark then reads them."""


class PlanOutdated(MirrorlakeError):
    """Raised by a produce task that was planned before another process fenced its transactional id:
    it writes nothing. Who planned it begins anew, asks for the newest token, and works on if the
    lease of the flow lets it."""


class LeaseTaken(ReplicationError):
    """Raised when another process lands this cluster or produces this flow."""


class Fenced(ReplicationError):
    """Raised when another process took over what this one does, since it was suspended or cut off:
    whatever this one has on its way is not taken any more, and it must end."""

    incident_kind: ClassVar[str] = "fenced"


class MapError(ReplicationError):
    """Raised when stage, offset map and target positions contradict each other; writing on would
    break the map."""

    incident_kind: ClassVar[str] = "map_contradiction"


class CountDiffers(MapError):
    """Raised when a reader of the stage gave more or fewer records than its index names: they are
    read again."""


def text_of(error: BaseException | None) -> str:
    """What an error says; what kind of error it is where it says nothing, or nothing that is a
    text. Never raises."""
    if error is None:
        return "unknown error"
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - it is on its way to a person, and its own text must not stop it
        text = ""
    return text or type(error).__name__


def some_of(names: Sequence[str], most: int, rest: str = " and {} more") -> str:
    """The first names for a sentence, `most` at most; behind them how many the others are, as
    `rest` says it."""
    more = len(names) - most
    return ", ".join(names[:most]) + (rest.format(more) if more > 0 else "")


def first_line(error: BaseException) -> str:
    """The first line of what an error says, for a sentence: engines and clients add pages."""
    return text_of(error).splitlines()[0]
