"""Land: the source topics of one cluster into `records`, one streaming query however many flows
read from it.

Natively where that can be done, else by Spark's own Kafka source. Within a query each batch is
committed exactly once. Nothing here needs a session before many records are to be landed.
"""

import logging
from collections.abc import Callable, Mapping

from mirrorlake.config.topology import Landing
from mirrorlake.extras import needs
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.landing.checkpoints import application_of, new_checkpoint
from mirrorlake.landing.job import LandJob
from mirrorlake.landing.native_land import land_again_natively, land_natively
from mirrorlake.landing.query import LandingQuery
from mirrorlake.landing.source_comparison import LandingPlan
from mirrorlake.native.selfcheck import problem as native_problem
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.home import over_connect

logger = logging.getLogger(__name__)

#: How often heartbeats are landed, seconds; the objective of their age is a minute.
HEARTBEAT_SECONDS = 10.0

Client = Mapping[str, str | int | bool]


def start_landing(
    lake: Lake,
    options: Mapping[str, str],
    plan: LandingPlan,
    landing: Landing,
    once: bool,
    is_heartbeats: Callable[[str], bool] = lambda _topic: False,
    client: Client | None = None,
) -> LandingQuery:
    """Start landing what a plan says, at least one partition.

    Args:
        lake: the lake.
        options: of Spark's Kafka source.
        plan: the partitions, and where each begins.
        landing: the cluster's settings.
        once: end at the end offsets seen at the start; else when it is stopped.
        is_heartbeats: the topics that wait for one another, HEARTBEAT_SECONDS at most: a flow that
            is idle except for its heartbeats would else never rest.
        client: settings of librdkafka, to read natively where that can be done: of a lake in a
            directory. Else Spark's own source reads.

    Raises:
        ClusterUnreachable: `once`, and the source does not report its ends.
        LakeError: the session would write the options' secrets down.
    """
    waiting = frozenset(key for key in plan.starts if not once and is_heartbeats(key[0]))
    if client is not None and isinstance(lake, PathLake) and _natively():
        checkpoint = new_checkpoint(lake, plan.alias)
        job = LandJob.from_plan(
            plan,
            client,
            landing,
            directory=lake.root,
            checkpoint=checkpoint,
            waiting=waiting,
            waiting_seconds=HEARTBEAT_SECONDS,
        )
        return land_natively(lake, job, landing, application_of(checkpoint), once)
    with needs("spark"):
        from mirrorlake.landing.spark_land import land_by_spark

    return land_by_spark(
        lake, options, plan, landing, once=once, waiting=waiting, waiting_seconds=HEARTBEAT_SECONDS
    )


def land_again(
    lake: Lake,
    options: Mapping[str, str],
    plan: LandingPlan,
    landing: Landing,
    ends: Mapping[TopicAndPartition, int],
    occasion: str,
    client: Client,
) -> None:
    """Land offsets in one commit: the stage had them and has lost them. What was deleted by
    predicate stays deleted: the source may have it still.

    Args:
        lake: the lake.
        options: of Spark's Kafka source.
        plan: the partitions; its `starts` are the first offsets, inclusive.
        landing: the cluster's settings.
        ends: the last offsets of the partitions, exclusive.
        occasion: names what it is landed again for. Twice for the same one, even at the same time,
            lands them once.
        client: settings of librdkafka.
    """
    forgotten = {
        (topic, partition): ranges
        for (topic, partition, generation), ranges in forgotten_from(lake, plan.alias).items()
        if generation == plan.generations.get((topic, partition), 0)
    }
    few = sum(end - plan.starts[key] for key, end in ends.items()) <= landing.small_batch_records
    application = f"mirrorlake again {plan.alias} {plan.assigned} {occasion}"
    if few and isinstance(lake, PathLake) and _natively():
        checkpoint = new_checkpoint(lake, plan.alias)
        job = LandJob.from_plan(
            plan,
            client,
            landing,
            directory=lake.root,
            checkpoint=checkpoint,
            waiting=frozenset(),
            waiting_seconds=0.0,
        )
        land_again_natively(lake.tables, job, ends, forgotten, application)
        return
    with needs("spark"):
        from mirrorlake.landing.spark_land import land_again_by_spark

    land_again_by_spark(
        lake, options, plan, ends=ends, forgotten=forgotten, application=application
    )


def _natively() -> bool:
    """Whether this process reads natively. Spark Connect would run the sink in another process than
    this one."""
    if over_connect():
        return False
    why_not = native_problem()
    if why_not is not None:
        logger.warning(
            "records are read by Spark's own source, which is slower, because %s", why_not
        )
    return why_not is None
