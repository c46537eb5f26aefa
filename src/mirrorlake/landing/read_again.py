"""Reads records again that retention deleted from the stage before a flow had produced them."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from mirrorlake.errors import InputError, StageTrimmed
from mirrorlake.lake.decisions import FOUND_NONE
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.incidents import Incident
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.table_upkeep import removals_from
from mirrorlake.landing.generations import generations_of
from mirrorlake.landing.land import land_again
from mirrorlake.landing.source_comparison import Branch, LandingPlan
from mirrorlake.offsets.positions import PartitionGeneration

logger = logging.getLogger(__name__)


def read_again(deployment: Deployment, alias: str, incident: Mapping[str, Any]) -> int:
    """Land the offsets of an incident, as far as the source still has them. Returns the first
    offset that was read: above the incident's if the source has trimmed its log too.

    Records in front that the source has compacted away since are noted, and not reported again. A
    process that dies meanwhile may call again: the records are landed once.

    Raises:
        InputError: the source has nothing of it.
        ClusterUnreachable: the source does not answer.
        LeaseTaken: another process does the same.
    """
    lake, connections = deployment.lake, deployment.connections
    key = (incident["topic"], incident["partition"])
    name, first, last = f"{key[0]}-{key[1]}", incident["first_offset"], incident["last_offset"]
    with Lease(lake, f"reading again from cluster {alias}"):
        stage = StageFiles(lake)
        place = PartitionGeneration(*key, incident["generation"])
        check = partial(_generation, deployment, alias, place, first=first, last=last)
        generation = check()
        log = connections.admin(alias).log_ends([key]).get(key)
        if log is None:
            raise InputError(f"cluster {alias} does not report what it has of {name}; try again")
        start, end = max(first, log.start), min(last + 1, log.end)
        if start >= end:
            raise InputError(
                f"cluster {alias} has nothing of offsets {first} to {last} of {name} any more: its "
                f"log begins at {log.start}; choose continue or stop"
            )
        staged = _first_staged(stage, alias, place, start)
        if staged is not None:  # another flow lacked them, too
            end = min(end, staged)
        if start == end:
            return int(start)
        generations = {key: generation} if generation else {}
        plan = LandingPlan(alias, {key: start}, generations, stage.newest_batch())
        landing = connections.topology.clusters[alias].landing
        client = connections.client(alias, "consumer")
        # The incident's time identifies it, whatever the clock was, and no other incident.
        occasion = f"{first}-{last} of {incident['at'].isoformat()}"
        # `check`: the topic may have been made again while it was read.
        land_again(lake, plan, landing, client, ends={key: end}, occasion=occasion, check=check)
        logger.info(
            "offsets %d to %d of %s were read from cluster %s again", start, end - 1, name, alias
        )
        there = _first_staged(stage, alias, place, start)
        if there is None or there > start:
            missing = (start, min(end, there or end) - 1)
            deployment.event_log.incidents.note(
                [_found_none(incident["flow"], place, missing)], FOUND_NONE
            )
        return int(start)


def _found_none(flow: str, place: PartitionGeneration, missing: tuple[int, int]) -> Incident:
    """Offsets (inclusive) in front of what was read again: the flow goes on without them. Behind a
    record no flow looks for what a log has compacted away."""
    first, last = missing
    error = StageTrimmed(
        f"the source has no record at offsets {first} to {last} of {place.topic}-"
        f"{place.partition} any more",
        **place._asdict(),
        first_offset=first,
        last_offset=last,
    )
    return Incident(flow, StageTrimmed.incident_kind, error)


def _first_staged(
    stage: StageFiles, alias: str, place: PartitionGeneration, offset: int
) -> int | None:
    """The first staged offset at or above one, of the same generation."""
    with stage.reading() as index:
        ranges = index.partition(alias, place.topic_partition)
        staged = next(ranges.above(place.generation, offset), None)
    if staged is None or staged.generation != place.generation:
        return None
    return max(staged.first, offset)


def _generation(
    deployment: Deployment, alias: str, place: PartitionGeneration, first: int, last: int
) -> int:
    """The generation of the staged offsets. Raises InputError if the source has another one now."""
    lake, key, topic = deployment.lake, place.topic_partition, place.topic
    current, admin = generations_of(lake, alias), deployment.connections.admin(alias)
    generation, branch = current.generation(key), current.branches.get(key, Branch(0, 0))
    staged = any(
        removal.place == place and removal.first_offset <= first and last < removal.below
        for removal in removals_from(lake, alias)
    )
    same = (
        topic in current.topics
        and admin.topic_ids([topic]).get(topic) == current.topics[topic].topic_id
    )
    if not (staged and same and generation == place.generation) or first < branch.first:
        raise InputError(
            f"offsets {first} to {last} of {topic}-{key[1]} were staged from a log that cluster "
            f"{alias} no longer has: the topic was made again, or the log went back; choose "
            "continue or stop"
        )
    return generation
