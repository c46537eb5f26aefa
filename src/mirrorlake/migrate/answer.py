"""The answer of `mirrorlake migrate`."""

from collections.abc import Sequence
from typing import Any

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.checkpoint_plan import OTHER_KIND
from mirrorlake.groups.moves import MoveResult
from mirrorlake.migrate.copies import Wave
from mirrorlake.migrate.wave_groups import WaveGroups

#: The columns of a row, in their order.
_SHOWN = (
    "group",
    "from_topic",
    "partition",
    "position",
    "to_topic",
    "to_position",
    "before",
    "done",
    "method",
    "exact",
    "detail",
)


def document_of(
    flow: ResolvedFlow,
    wave: Wave,
    groups: WaveGroups,
    *,
    results: Sequence[MoveResult],
    methods: Sequence[str],
    lacking: Sequence[str],
) -> dict[str, Any]:
    """What was done, or would be, and what is left, as one document; `methods` has how each result
    was located, `lacking` why the target lacks one of a topic's two copies, and what else concerns
    no group."""
    left = [
        *lacking,
        *(
            f"cluster {flow.target} did not report all its groups: {why}"
            for why in groups.unreported
        ),
    ]
    left += [
        f"group {group} was not reported: {why}" for group, why in sorted(groups.errors.items())
    ]
    left += [
        f"group {group}, {topic}-{partition}: the other copy has no such partition (yet)"
        for group, topic, partition in groups.lost
    ]
    left += [
        f"group {group} stands in {copy}: cluster {flow.source} does not show topic "
        f"{wave.topic_of(flow.source, copy)}, or has it no more, and flow {flow.name} has no copy "
        "of it"
        for group, copy in groups.stranded
    ]
    left += [
        f"group {group}, {topic}-{partition}: the copy that it leaves has no such partition, so it "
        "has no position there, and begins by its auto.offset.reset; set it to the start"
        for group, topic, partition in groups.unbegun
    ]
    left += [
        f"group {result.standing.checkpoint.group_id}, {result.standing.checkpoint.topic}-"
        f"{result.standing.checkpoint.partition}: {result.detail}"
        for result in results
        if result.done in ("kept", "failed") or (result.standing.lacks and result.done != "there")
    ]
    return {
        "flow": flow.name,
        "rollback": wave.rollback,
        "dry_run": wave.dry_run,
        "complete": not left,
        "groups": [_row(result, methods[number]) for number, result in enumerate(results)],
        "warnings": [f"group {group} is not moved: it is {OTHER_KIND}" for group in groups.others],
        "left": left,
    }


def _row(result: MoveResult, method: str) -> dict[str, Any]:
    document = result.document()
    document |= {"from_topic": document["topic"], "method": method}
    if result.standing.checkpoint.target_position < 0:
        document["to_position"] = None
    return {name: document[name] for name in _SHOWN}
