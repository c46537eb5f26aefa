"""The exceptions of mirrorlake, one small tree.

    MirrorlakeError                   exit code 1
    ├── InputError                    exit code 2: somebody has to change an input; nothing was done
    │   ├── TopologyError             the topology file does not say something that can be run
    │   ├── ClusterUnusable           a cluster cannot be used now, whatever the reason
    │   │   ├── ClusterUnreachable    no broker of it answered in time
    │   │   └── AuthenticationFailed  somebody answered in its name and refused us, or is not trusted
    │   ├── LakeError                 the lake cannot be read or written
    │   ├── UnknownOffset             a flow, topic or partition that the map has never seen
    │   └── MissingJava               no Java runtime that Spark and Kafka can use
    └── ReplicationError              the replication itself is in a state that needs an operator
        ├── SourceDataLost            records vanished from the source before they were staged
        ├── TargetRefused             the target cluster refused a write
        │   ├── TargetRecreated       the target topic is another one than the map knows
        │   └── PositionLost          the target does not say any more how far the flow is
        ├── StageTrimmed              retention deleted staged records that a flow has not produced
        ├── LayoutError               a file of the stage does not hold a partition's offsets in rising order
        ├── FilesUnreadable           workers cannot open files of the stage themselves
        ├── LeaseTaken             another process does this already
        └── MapError                  the stage, the map and the target's positions contradict each other

Each carries its facts as attributes and reads as one sentence: what is wrong, where, and what to do.
"""


class MirrorlakeError(Exception):
    """Root of everything that mirrorlake raises on purpose. `exit_code` is what the command line ends with."""

    exit_code = 1

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by message and facts: tasks raise these in executors and the driver reads them."""
        return (_rebuild, (type(self), self.message, self.facts))


def _rebuild(kind: type[MirrorlakeError], message: str, facts: dict[str, object]) -> MirrorlakeError:
    return kind(message, **facts)


class InputError(MirrorlakeError):
    """Raised when a person has to change a file, a flag or a cluster before anything can be done."""

    exit_code = 2


class TopologyError(InputError):
    """Raised when the topology file is unreadable, invalid, or describes something that must not run."""


class ClusterUnusable(InputError):
    """Raised when a cluster cannot be used now. Facts: alias, address."""


class ClusterUnreachable(ClusterUnusable):
    """Raised when no broker of a cluster answered within the time allowed. Facts: alias, address, seconds."""


class AuthenticationFailed(ClusterUnusable):
    """Raised when whoever answers in a cluster's name refuses us, or is not trusted. Facts: alias, address."""


class LakeError(InputError):
    """Raised when the lake cannot be opened: not writable, not a lake, or written by a newer version."""


class UnknownOffset(InputError):
    """Raised when a flow, topic or partition has never been seen by the offset map."""


class MissingJava(InputError):
    """Raised when there is no Java 17 or 21 to start Spark and Kafka with. Facts: found."""


class ReplicationError(MirrorlakeError):
    """Raised when replication stopped for a reason that an operator has to decide about."""


class SourceDataLost(ReplicationError):
    """Raised when source records were gone before they were staged (retention, a recreated topic)."""


class TargetRefused(ReplicationError):
    """Raised when the target refused records. Facts: topic, partition, first_offset, last_offset, reason."""

    incident_kind = "target_refused"


class TargetRecreated(TargetRefused):
    """Raised when a target topic's log is shorter than what the map says was written to it: it was made again."""

    incident_kind = "target_recreated"


class PositionLost(TargetRefused):
    """Raised when the flow's committed position is gone and the target holds records that may be the flow's own."""

    incident_kind = "position_lost"


class StageTrimmed(ReplicationError):
    """Raised when retention deleted staged records that a flow lacks. Facts: topic, partition, first_offset,
    last_offset."""

    incident_kind = "stage_trimmed"


class LayoutError(ReplicationError):
    """Raised by a produce task that finds offsets out of order in a file; the driver then reads sorted."""


class FilesUnreadable(ReplicationError):
    """Raised when workers cannot open files of the stage themselves; Spark then reads them. Facts: path."""


class LeaseTaken(ReplicationError):
    """Raised when another process lands this cluster or produces this flow. Facts: what, holder."""


class MapError(ReplicationError):
    """Raised when stage, offset map and target positions contradict each other; writing on would break the map."""


def incident_kind(error: MirrorlakeError) -> str:
    """The kind of incident that an error is."""
    kinds = {"TargetRefused": "target_refused", "MapError": "map_contradiction", "SourceDataLost": "source_data_lost"}
    return kinds.get(type(error).__name__, "flow_stopped")
