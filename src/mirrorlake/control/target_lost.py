"""The message to operators about a target topic that was deleted."""

from collections.abc import Sequence

from mirrorlake.control.target_comparison import TargetLoss
from mirrorlake.errors import TargetRecreated, some_of
from mirrorlake.lake.targets import MappedTarget

#: How many partitions an incident names.
_NAMED_PARTITIONS = 8


def target_lost(
    flow: str, alias: str, loss: TargetLoss, mapped: Sequence[MappedTarget]
) -> TargetRecreated:
    """The message: what was lost, and the choices."""
    count = sum(part.record_count for part in mapped)
    parts = [f"partition {part.partition}: {part.first} to {part.last}" for part in mapped]
    some = some_of(parts, _NAMED_PARTITIONS, " and {} partitions more")
    what = f"{count} records of {loss.topic} (source offsets, {some})"
    what = what if mapped else "nothing yet"
    happened = "was deleted and made again" if loss.made_again else "was deleted"
    return TargetRecreated(
        f"topic {loss.target_topic} {happened} at cluster {alias}, to which flow {flow} had "
        f"brought {what}; it waits until you decide: mirrorlake resolve --flow '{flow}' --topic "
        f"'{loss.topic}' --choice again (or continue, or stop)",
        topic=loss.topic,
        first_offset=min((part.first for part in mapped), default=None),
        last_offset=max((part.last for part in mapped), default=None),
        target_generation=loss.generation,
        target_topic=loss.target_topic,
    )
