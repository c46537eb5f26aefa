"""mirrorlake: Kafka replication through Delta Lake, exactly once, with an exact map of offsets.

    import mirrorlake

    lake = mirrorlake.open("mirrorlake.yml")       # or path="./lake", or catalog="main", schema="m"
    lake.translate("east->west", "orders", 0, 42)  # Position(topic='east.orders', offset=57, …)
    lake.flows["east->west"].lag()                 # a DataFrame
    lake.sql("SELECT * FROM throughput")           # Rows
    lake.run(once=True)

The names below are the library (docs/library.md); everything else may change with any version. The
Kafka client is imported when `open` is first named, not by `import mirrorlake`, and Spark when
something first needs a session.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mirrorlake.errors import (
    AuthenticationFailed,
    ClusterUnreachable,
    ClusterUnusable,
    ContentDiffers,
    CountDiffers,
    Fenced,
    FilesUnreadable,
    InputError,
    LakeError,
    LayoutError,
    LeaseTaken,
    MapBehind,
    MapError,
    MapUnknown,
    MirrorlakeError,
    MissingExtra,
    MissingJava,
    PlanOutdated,
    PositionLost,
    ReplicationError,
    SourceDataLost,
    StageTrimmed,
    StagingError,
    TargetLost,
    TargetRecreated,
    TargetRefused,
    TopicRefused,
    TopologyError,
    UnknownOffset,
)

if TYPE_CHECKING:
    from mirrorlake.library.answers import Plan, Produced, Resolved, Rows, Status
    from mirrorlake.library.flows import OpenFlow
    from mirrorlake.library.group_answers import Divergence, Groups, Migrated, Moves, Position
    from mirrorlake.library.lake import OpenLake
    from mirrorlake.library.lake_answers import Forgotten, Registered, Upkeep
    from mirrorlake.library.opening import open
    from mirrorlake.library.resent import Resent
    from mirrorlake.library.tracing import Trace
    from mirrorlake.library.verify_answer import Verified

__version__ = "0.1.0"

__all__ = [
    "AuthenticationFailed", "ClusterUnreachable", "ClusterUnusable", "ContentDiffers",
    "CountDiffers", "Divergence", "Fenced", "FilesUnreadable", "Forgotten", "Groups",
    "InputError", "LakeError", "LayoutError", "LeaseTaken", "MapBehind", "MapError",
    "MapUnknown", "Migrated", "MirrorlakeError", "MissingExtra", "MissingJava", "Moves",
    "OpenFlow", "OpenLake", "Plan", "PlanOutdated", "Position", "PositionLost", "Produced",
    "Registered", "ReplicationError", "Resent", "Resolved", "Rows", "SourceDataLost",
    "StageTrimmed", "StagingError", "Status", "TargetLost", "TargetRecreated", "TargetRefused",
    "TopicRefused", "TopologyError", "Trace", "UnknownOffset", "Upkeep", "Verified",
    "__version__", "open",
]  # fmt: skip

#: Modules of the library, imported when one of their names is first used; the cheapest first.
_LAZY = (
    "answers", "group_answers", "lake_answers", "verify_answer", "resent", "flows", "lake",
    "opening", "tracing",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in __all__:
        for home in _LAZY:
            module = import_module(f"mirrorlake.library.{home}")
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
