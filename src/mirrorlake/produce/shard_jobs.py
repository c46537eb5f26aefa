"""The jobs of a flow's tasks, and the check of tasks that report nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from mirrorlake.errors import CountDiffers
from mirrorlake.offsets.generations import FIRST
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.batch import ShardPlan
from mirrorlake.produce.codecs import Codecs
from mirrorlake.produce.counted import Stretch, check_unread, narrowed
from mirrorlake.produce.report import Reports
from mirrorlake.produce.spec import FlowSpec, Target
from mirrorlake.produce.task import ShardJob


def target_of(spec: FlowSpec, codecs: Codecs, shard: int, fencing_token: int = 0) -> Target:
    """The target of a flow's shard, and its names there."""
    name = spec.name_at_target
    return Target(
        spec.client,
        codecs.settings(shard),
        group_id=name,
        transactional_id=f"{name}-{shard}",
        transactional=spec.transactional,
        provenance=spec.provenance,
        mark=spec.mark,
        fencing_token=fencing_token,
    )


def foreign_from(spec: FlowSpec, shard: ShardPlan) -> dict[TopicAndPartition, int]:
    """The target offset from which on records may be the flow's own but unmapped, where known."""
    starts: dict[TopicAndPartition, int] = {}
    for plan in shard.partitions:
        key = plan.key
        began = spec.targets.get(plan.target_topic, FIRST).began
        if plan.first <= spec.known_foreign.get(plan.place, -1):
            continue
        if plan.floor.target is not None:
            starts[key] = plan.floor.target
        elif began:
            starts[key] = began[plan.partition] if plan.partition < len(began) else 0
    return starts


def narrowed_jobs(
    jobs: Sequence[ShardJob], count: Callable[[Sequence[Stretch]], Sequence[int]]
) -> list[ShardJob]:
    """The jobs for rows that Spark reads, which are those of the plans and no others."""
    plans = [plan for job in jobs for plan in job.plan.partitions]
    by_key = {plan.key: plan for plan in narrowed(plans, count)}
    return [
        replace(
            job,
            plan=replace(
                job.plan, partitions=tuple(by_key[plan.key] for plan in job.plan.partitions)
            ),
        )
        for job in jobs
    ]


def checked_for_unread(jobs: Sequence[ShardJob], done: Reports) -> Reports:
    """The result, marked as failed if a shard that had records to read reported nothing."""
    reported = {shard for rows in done.results for shard in rows["shard"].to_pylist()}
    try:
        for job in jobs:
            if job.plan.shard not in reported:
                check_unread(job.plan.partitions, job.skipped)
    except CountDiffers as error:
        return replace(done, failure=error)
    return done
