"""What a flow's producer begins with: settings, names, what waits or was given up, provenance."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.errors import ClusterUnusable, TargetRefused
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.lake.decisions import Decided
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.other_logs import source_generations
from mirrorlake.lake.starts import starts_of
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.produce.codecs import COMPRESSION
from mirrorlake.produce.provenance import Provenance
from mirrorlake.produce.spec import FlowSpec


def flow_spec(
    flow: ResolvedFlow,
    lake: Lake,
    targets: TargetTopics,
    *,
    decided: Decided,
    clients: tuple[Settings, Settings],
    closed: Collection[str],
    reader: str,
    provenance: Provenance | None,
    on_refused: Callable[[Sequence[TargetRefused]], None],
    on_parked: Callable[[Sequence[PartitionGeneration]], None],
) -> FlowSpec:
    """The spec of a flow as of now: it must not change while the producer follows the stage.

    Args:
        flow, lake, targets: the flow.
        decided: what operators decided.
        clients: settings of the admin client and of the producer.
        closed: topics that must not be produced.
        reader: how tasks read the stage: auto, files or rows.
        provenance: what is written into headers, if anything.
        on_refused: gets the refusals of the target.
        on_parked: gets the partitions that go on behind refused records.
    """
    settings = flow.settings

    def produced(topic: str) -> str | None:
        return None if topic in closed else targets.produced_topic(topic)

    return FlowSpec(
        flow.name,
        source_cluster=flow.source,
        name_at_target=name_at_target(lake.lake_id, flow.name),
        remote_topic=produced,
        client=clients[0],
        producer=producer_settings(flow, clients[1]),
        produce_tasks=settings.produce_tasks,
        transactional=settings.delivery == "exactly_once",
        reader=reader,
        left_out=(
            *targets.left_out,
            *sorted(closed),
            *(() if isinstance(settings.paused, bool) else settings.paused),
        ),
        stopped=frozenset(decided.stopped),
        skipped=decided.skipped,
        again=decided.again,
        known_foreign=decided.foreign,
        targets=targets.generations.living,
        provenance=provenance,
        on_refused=on_refused,
        forgotten=forgotten_from(lake, flow.source),
        parks=settings.on_refused == "park",
        park_at=decided.parked,
        on_parked=on_parked,
        starts=starts_of(lake.now, flow.name),
        generations=partial(source_generations, lake.now, flow.name),
    )


def producer_settings(flow: ResolvedFlow, cluster: Settings) -> Settings:
    """A flow's producer settings, laid over those of its target's block for all producers."""
    codec = flow.settings.compression
    return cluster if codec is None else {**cluster, COMPRESSION: codec}


def provenance_of(flow: ResolvedFlow, deployment: Deployment) -> Provenance | None:
    """What a flow writes into headers; None for nothing. Raises ClusterUnusable."""
    if flow.settings.provenance == "none":
        return None
    ids = _cluster_ids(flow, deployment)
    return Provenance(ids[flow.source], ids[flow.target], flow.settings.provenance == "strip")


def _cluster_ids(flow: ResolvedFlow, deployment: Deployment) -> dict[str, str]:
    """Both clusters' ids by alias; for a source that cannot be asked, the one the lake knows."""
    source, target, connections = flow.source, flow.target, deployment.connections
    try:
        return connections.identify([target, source])
    except ClusterUnusable as error:
        rows = deployment.lake.ask("known_clusters")
        known = [row["cluster_id"] for row in rows if row["alias"] == source]
        if error.alias != source or not known:
            raise
        return {**connections.identify([target]), source: known[0]}
