"""The last catch-up before groups are moved: brings a flow up to the present end offsets of its
source."""

import logging
import time
from collections.abc import Collection, Mapping, Sequence

from mirrorlake.attempts import attempts
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.closed_topics import closed_sources, closed_targets
from mirrorlake.errors import LakeError, LeaseTaken, MirrorlakeError
from mirrorlake.failover.left_over import Drained
from mirrorlake.kafka.access import hidden
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.objectives import known_heartbeats
from mirrorlake.lake.other_logs import other_logs, went_back
from mirrorlake.lake.targets import living_targets
from mirrorlake.lake.translate import Translator
from mirrorlake.offsets.positions import TopicAndPartition, partitions_of
from mirrorlake.run.leases import lease_of_flow
from mirrorlake.run.options import RunOptions
from mirrorlake.run.other_process import runs_elsewhere
from mirrorlake.run.replicator import Replicator

logger = logging.getLogger(__name__)

#: How long to wait for a running `mirrorlake run` to reach the end, and how often that is checked,
#: seconds.
WAIT_SECONDS = 120.0
LOOK_SECONDS = 2.0
#: How long open transactions at the source may take to end, seconds: those of producers that go on
#: have ended by then.
OPEN_SECONDS = 10.0


def drain(deployment: Deployment, flow: ResolvedFlow) -> Drained:
    """Bring a flow up to the end of its source: in this process, or by waiting for the one that
    runs it.

    This process does not run the flow if another one may be running it: two producers would write
    records twice. What stops the drain is reported, not raised; positions ahead of the mirror are
    then held back. Paused topics, and a disabled flow, stay where they are. Raises ClusterUnusable,
    and LakeError when the lake was opened only to be read.
    """
    lake = deployment.lake
    ends, held, silent = _ends(deployment.connections, flow, living_targets(lake.now, flow.name))
    others, closed = _other_logs(deployment, flow, ends)
    ends = {key: end for key, end in ends.items() if key not in others}
    resting = {key: end for key, end in ends.items() if _rests(flow, key[0])}
    going = {key: end for key, end in ends.items() if key not in resting}
    missing, records, detail = ([], 0, None) if _rests(flow) else _brought(deployment, flow, going)
    # again: the process that runs the flow may have noticed a change meanwhile
    closed |= _other_logs(deployment, flow, ends)[1]
    gone = closed_targets(lake.now, deployment.connections, flow)
    closed |= {topic: gone[topic] for topic in sorted(gone.keys() & {topic for topic, _ in ends})}
    left = _missing(Translator(lake, flow.name), _without_heartbeats(lake, flow, resting))
    detail = detail or _unknown(flow, silent, closed) or _why_left(flow, left)
    missing = [*dict.fromkeys([*missing, *silent, *closed, *left])]
    complete = not missing and not held and detail is None
    return Drained(
        flow.name,
        complete,
        records=records,
        missing=tuple(missing),
        detail=detail,
        held=tuple(held),
    )


def _brought(
    deployment: Deployment, flow: ResolvedFlow, ends: dict[TopicAndPartition, int]
) -> tuple[list[str], int, str | None]:
    """Bring a flow up to some ends. Returns the partitions that did not come there, how many
    records this process produced, and what stopped it."""
    free, detail = _is_free(deployment, flow)
    if not free:
        missing = _wait(deployment.lake, flow, ends)
        return missing, 0, detail if missing else None
    counted: list[int] = []
    try:
        Replicator(
            deployment,
            [flow],
            RunOptions(once=True, keeps_modes=True),
            report=lambda _flow, batch: counted.append(batch.record_count),
        ).run()
    except MirrorlakeError as error:
        detail = str(error)
    return _missing(Translator(deployment.lake, flow.name), ends), sum(counted), detail


def _other_logs(
    deployment: Deployment, flow: ResolvedFlow, keys: Collection[TopicAndPartition]
) -> tuple[set[TopicAndPartition], dict[str, str]]:
    """The partitions whose log is not the mirrored one, and may end in front of what was mirrored;
    and why, by topic or partition."""
    lake, source = deployment.lake.now, deployment.connections.admin(flow.source)
    topics = closed_sources(lake, source, flow, {topic for topic, _ in keys})
    back = other_logs(lake, flow.name).since
    others = {key for key in keys if key[0] in topics or key in back}
    parts = {
        f"{key[0]}-{key[1]}": went_back(flow.source, back[key])
        for key in sorted(others & back.keys())
        if key[0] not in topics
    }
    return others, topics | parts


def _rests(flow: ResolvedFlow, topic: str | None = None) -> bool:
    """Whether a flow, or one topic of it, is disabled or paused."""
    resting = flow.paused or not flow.settings.enabled
    return resting or topic is not None and flow.pauses(topic)


def _why_left(flow: ResolvedFlow, left: Sequence[str]) -> str | None:
    """Why partitions at rest are behind their ends; None if none is."""
    if not left:
        return None
    why = "it is disabled" if not flow.settings.enabled else "they are paused"
    return f"{len(left)} partitions, such as {left[0]}, are not mirrored up to their ends: {why}"


def _unknown(flow: ResolvedFlow, silent: Sequence[str], closed: Mapping[str, str]) -> str | None:
    """Why it is not known whether all is mirrored; None if it is known."""
    if silent:
        return (
            f"{len(silent)} partitions or topics of {flow.source}, such as {silent[0]}, did not "
            "report their ends"
        )
    return next((f"topic {topic}: {why}" for topic, why in closed.items()), None)


def _ends(
    connections: Connections, flow: ResolvedFlow, mirrored: Collection[str]
) -> tuple[dict[TopicAndPartition, int], list[str], list[str]]:
    """The ends of a flow's partitions at its source for readers of committed records; the
    transactions that stay open there, a sentence each; and what is not reported: partitions whose
    leader is silent, and `mirrored` topics that we may not see."""
    admin = connections.admin(flow.source)
    there = admin.topics()
    wanted = {name for name in there.keys() | mirrored if flow.selection.selects(name)}
    keys = partitions_of({name: there[name].partitions for name in sorted(wanted & there.keys())})
    marks = admin.end_offsets(keys, committed=False, skip_silent=True)
    ends, waiting = dict[TopicAndPartition, int](), keys
    for _ in attempts(OPEN_SECONDS, LOOK_SECONDS):
        ends |= admin.end_offsets(waiting, skip_silent=True)
        waiting = _open(ends, marks)
        if not waiting:
            break
    answered = ends.keys() & marks.keys()  # without a mark, open transactions stay unseen
    silent = [f"{topic}-{number}" for topic, number in keys if (topic, number) not in answered]
    silent += sorted(hidden(admin.client, gone)) if (gone := wanted - there.keys()) else []
    return ends, _held(connections, flow, ends, marks), silent


def _open(
    ends: Mapping[TopicAndPartition, int], marks: Mapping[TopicAndPartition, int]
) -> list[TopicAndPartition]:
    """Partitions whose last stable offset has not reached the earlier end of their log."""
    return [key for key, end in ends.items() if end < marks.get(key, end)]


def _held(
    connections: Connections,
    flow: ResolvedFlow,
    ends: Mapping[TopicAndPartition, int],
    marks: Mapping[TopicAndPartition, int],
) -> list[str]:
    keys = _open(ends, marks)
    known = connections.open_transactions(flow.source, keys)
    sentences = []
    for key in sorted(keys):
        whose, since = "a producer that is not known", ""
        if transaction := known.get(key):
            whose = f"producer id {transaction.producer_id}"
            seconds = time.time() - transaction.written_ms / 1000
            since = f", which wrote last {seconds:.0f} s ago"
        sentences.append(
            f"a transaction of {whose}{since}, is open at offset {ends[key]} of {key[0]}-{key[1]} "
            f"on {flow.source}: {marks[key] - ends[key]:,} offsets behind it are mirrored when it "
            "ends"
        )
    return sentences


def _is_free(deployment: Deployment, flow: ResolvedFlow) -> tuple[bool, str | None]:
    """Whether no other process runs a flow; False with a sentence where that cannot be known."""
    lease = lease_of_flow(deployment, flow.name)
    try:
        lease.take(sure=True)
    except LeaseTaken:
        return False, None
    except LakeError as error:
        return False, str(error)
    lease.release()
    # in a store, all hosts see the lease's object
    if not deployment.lake.in_store and runs_elsewhere(deployment.lake, flow.name, lease):
        return False, f"another process runs flow {flow.name}, and did not come to the end in time"
    return True, None


def _wait(lake: Lake, flow: ResolvedFlow, ends: dict[TopicAndPartition, int]) -> list[str]:
    ends = _without_heartbeats(lake, flow, ends)
    translator = Translator(lake, flow.name)
    for last in attempts(WAIT_SECONDS, LOOK_SECONDS):
        missing = _missing(translator, ends)
        if last or not missing:
            break
        logger.info(
            "flow %s: waiting for %d partitions to come to their end", flow.name, len(missing)
        )
    return missing


def _without_heartbeats(
    lake: Lake, flow: ResolvedFlow, ends: dict[TopicAndPartition, int]
) -> dict[TopicAndPartition, int]:
    """Leave out the ends of heartbeats, which wait for other records as long as they may."""
    aside = known_heartbeats(lake, flow.name) if ends else None
    return {} if aside is None else {key: end for key, end in ends.items() if not aside(key[0])}


def _missing(translator: Translator, ends: dict[TopicAndPartition, int]) -> list[str]:
    """Partitions with unmapped records: an end that translates exactly has been reached."""
    asked = [(topic, partition, end) for (topic, partition), end in ends.items() if end > 0]
    if not asked:
        return []
    translated = translator.translate(asked, None)
    return [
        f"{key[0]}-{key[1]}" for key in asked if key not in translated or not translated[key].exact
    ]
