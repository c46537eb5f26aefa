"""Finding what retention took from the stage before a flow had produced it."""

from mirrorlake.errors import StageTrimmed
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.table_upkeep import removals_from
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.holes import Accepted, find_holes, lacking


def holes_before(
    lake: Lake, stage: StageFiles, producer: FlowProducer, accepted: Accepted
) -> dict[TopicAndPartition, StageTrimmed]:
    """The partitions of which a flow lacks what the stage has no more, each with what an operator is told."""
    spec, floors = producer.spec, producer.floors()
    removals = removals_from(lake, spec.source_cluster)
    candidates = lacking(removals, floors, spec.remote_topic, spec.targets, spec.stopped)
    if not candidates:
        return {}
    stage.doubt()  # where the index follows no deletions, it has them yet
    with stage.reading() as index:
        holes = list(find_holes(candidates, floors, index, spec.source_cluster, accepted))
    return {
        (hole.topic, hole.partition): StageTrimmed(
            f"flow {spec.name} has not produced offsets {hole.first} to {hole.last} of {hole.topic}-{hole.partition}, "
            "and `maintain` has deleted them from the stage; decide with `mirrorlake resolve`",
            topic=hole.topic,
            partition=hole.partition,
            generation=hole.generation,
            first_offset=hole.first,
            last_offset=hole.last,
        )
        for hole in holes
    }
