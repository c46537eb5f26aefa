"""Holes in the stage in front of a flow: records that it lacks and that the stage no longer has."""

from mirrorlake.errors import StageTrimmed
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.retention import Removal
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.table_upkeep import removals_from
from mirrorlake.lake.targets import generations_begun
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.holes import Accepted, find_holes, lacking


def holes_before(
    lake: Lake, stage: StageFiles, producer: FlowProducer, accepted: Accepted
) -> dict[TopicAndPartition, StageTrimmed]:
    """The partitions of which a flow lacks records that the stage no longer has, each with the
    error that an operator sees. The producer notices later deletions by itself: they are noted
    before they happen."""
    spec, floors = producer.spec, producer.floors()

    def candidates() -> dict[TopicAndPartition, list[Removal]]:
        removals = removals_from(lake, spec.source_cluster)
        begun = generations_begun(lake, spec.name) if removals else {}
        return lacking(removals, floors, spec.remote_topic, spec.targets, spec.stopped, begun=begun)

    with stage.reading() as index:
        producer.known_deletions = index.deletions
    if not candidates():
        return {}
    stage.invalidate()  # an index that follows no deletions still lists the deleted files
    with stage.reading() as index:
        producer.known_deletions = index.deletions
        holes = list(
            find_holes(
                candidates(),
                floors,
                index,
                spec.source_cluster,
                accepted=accepted,
                forgotten=spec.forgotten,
            )
        )
    return {
        (hole.topic, hole.partition): StageTrimmed(
            f"flow {spec.name} has not produced offsets {hole.first} to {hole.last} of "
            f"{hole.topic}-{hole.partition}, and the stage does not hold them: `maintain` has "
            "deleted them, or landing began behind them, where other flows start; decide with "
            "`mirrorlake resolve`",
            **hole.place._asdict(),
            first_offset=hole.first,
            last_offset=hole.last,
        )
        for hole in holes
    }
