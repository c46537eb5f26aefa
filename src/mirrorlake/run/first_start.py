"""A flow's first start: from where it mirrors what is there (`start`), noted before reading."""

import logging
from collections.abc import Collection, Mapping

from confluent_kafka import KafkaException

from mirrorlake.config.flow import time_of_start
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnusable, MirrorlakeError, ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.starts import has_started, note_start
from mirrorlake.landing.generations import begin_generations, generations_of
from mirrorlake.landing.source_comparison import TopicGeneration
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition, partitions_of

logger = logging.getLogger(__name__)


def note_starts_known(
    deployment: Deployment, flows: Collection[ResolvedFlow], once: bool
) -> list[str]:
    """Note, for each flow that never ran, its first offset in each partition that exists now. A
    flow's earlier note stays, whatever `start` is by now.

    Returns the flows whose first offsets are not known: each waits with an open incident, and
    nothing is landed for it. Raises if that holds for all flows, or for one of a run with `once`.
    """
    problems: dict[str, MirrorlakeError] = {}
    for flow in flows:
        try:
            note_first_start(deployment, flow)
        except (ClusterUnusable, ReplicationError) as problem:
            problems[flow.name] = problem
            if once or len(problems) == len(flows):
                raise
    for name, why in problems.items():
        logger.error("%s; it is tried again, and the other flows go on", why)
        deployment.event_log.incidents.open(name, "flow_waits", why)
    return list(problems)


def note_first_start(deployment: Deployment, flow: ResolvedFlow) -> None:
    """Note the first offsets of one flow, unless it has started before.

    Raises ClusterUnusable, or ReplicationError if a partition's leader does not answer, or a topic
    is not described: a flow that began without a known offset would mirror too much, or lose what
    comes meanwhile.
    """
    lake = deployment.lake
    if has_started(lake.now, flow.name):
        return
    asked = flow.settings.start
    starts: dict[PartitionGeneration, int] = {}
    if asked != "earliest":
        generations = generations_of(lake, flow.source)
        source = deployment.connections.admin(flow.source)
        # Topic ids are asked for before the offsets: the offsets of a topic that is made again
        # before landing notes it would otherwise cut off the start of the new one.
        selected = _selected(source, flow)
        ids = source.topic_ids(sorted(selected.keys() - generations.topics.keys()))
        firsts = _firsts(source, flow, selected)
        begun = {name: TopicGeneration(0, topic_id) for name, topic_id in ids.items()}
        if begun:
            begin_generations(lake, flow.source, begun)
        starts = {
            PartitionGeneration(*key, generations.generation(key)): first
            for key, first in firsts.items()
        }
        logger.info("flow %s begins at %s in %d partitions", flow.name, asked, len(starts))
    note_start(lake, flow.name, asked, starts)


def _firsts(
    source: ClusterAdmin, flow: ResolvedFlow, selected: Mapping[str, int]
) -> dict[TopicAndPartition, int]:
    """The first offset to mirror of each partition of `selected` (counts by topic): the last stable
    one for `latest`, so that what a transaction in flight has written is mirrored when it ends."""
    keys = partitions_of(selected)
    ends = source.end_offsets(keys, skip_silent=True)
    silent = [f"{topic}-{partition}" for topic, partition in keys if (topic, partition) not in ends]
    if silent:
        raise _unknown(flow, ", ".join(silent[:8]))
    at_ms = time_of_start(flow.settings.start)
    try:
        return ends if at_ms is None else {**ends, **source.offsets_at(ends.keys(), at_ms)}
    except KafkaException as error:
        raise _unknown(flow, f"some partition ({error.args[0].str()})") from error


def _selected(source: ClusterAdmin, flow: ResolvedFlow) -> dict[str, int]:
    """The topics that the flow selects, each with its partition count."""
    topics = source.topics().items()
    return {name: topic.partitions for name, topic in topics if flow.selection.selects(name)}


def _unknown(flow: ResolvedFlow, where: str) -> ReplicationError:
    return ReplicationError(
        f"flow {flow.name} cannot begin at {flow.settings.start}: cluster {flow.source} does "
        f"not say where {where} is; start it when each partition has a leader"
    )
