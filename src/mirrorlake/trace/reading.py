"""Reads a lake's facts about one record; each query is bounded by its place or time."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from mirrorlake.errors import InputError, UnknownOffset
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import never_seen
from mirrorlake.trace.facts import FactRow, Facts, FlowRun, TracedRecord

#: A longer gap between samples (ms) means that none ran the flow, by their age in days: `maintain`
#: thins samples to one a minute after a day, and one an hour after a week (`lake/maintain.py`).
PAUSES_MS = ((1, 60_000), (7, 150_000), (None, 7_500_000))
#: Causes of a delay are looked for this long before landing: timestamps may be years older.
_LOOK_BACK = timedelta(days=1)
#: A flow takes its first sample within ten seconds: older records may have waited for it.
_FIRST_GAP_MS = 15_000
#: How far back to look for a partition's newest sample, in steps; then in all samples.
_NEWEST = (timedelta(hours=1), timedelta(days=1))
_GREATEST = 2**63 - 1
#: Matches a record in any generation of its topic.
ANY_GENERATION = -1


def read_facts(
    lake: Reader,
    place: TracedRecord,
    flow_state: FlowRun,
    now: datetime,
    generation: int = ANY_GENERATION,
) -> Facts:
    """Read the facts about a record; `now` is in UTC, without a time zone. If the topic was
    recreated, `generation` picks the record, else the newest generation that has it.

    Raises UnknownOffset for a partition that the flow has never seen.
    """
    keys = place._asdict()
    rows = lake.query_rows("trace_record", **keys)
    wanted = (row for row in rows if generation in (ANY_GENERATION, row["generation"]))
    record = next(wanted, None)
    generation = generation if record is None else record["generation"]
    # Read progress before the map's row: one below it and not in the map even then was passed over.
    passed = _passed(lake, place, generation)
    mapped = _row(lake, "trace_map", generation=generation, **keys)
    facts = Facts(
        place,
        now,
        record,
        mapped,
        passed=passed,
        flow_state=flow_state,
        newest=_newest_sample(lake, place, now),
    )
    around = _row(lake, "trace_around", **keys) if record is None else None
    known = any(value is not None for value in (around or {}).values())
    if record is None and mapped is None and facts.newest is None and not known:
        raise UnknownOffset(never_seen(place.flow, place.topic, place.partition, False))
    parked = (
        _row(lake, "trace_parked", generation=max(0, generation), **keys)
        if mapped is None
        else None
    )
    facts = replace(
        facts, around=around, parked=parked, **_batches(lake, facts), **_history(lake, facts)
    )
    return replace(
        facts,
        at_landing=_sample(lake, place, facts.landed_at, _LOOK_BACK, generation),
        backlog=_backlog(lake, facts),
        readers=_readers(lake, facts),
    )


def origin(
    lake: Reader, flow: str, topic: str, partition: int, offset: int
) -> tuple[TracedRecord, int]:
    """The source record at a target offset, and the generation of its topic.

    Raises UnknownOffset if no record of this flow is at the offset.
    """
    row = _row(lake, "trace_origin", flow=flow, topic=topic, partition=partition, offset=offset)
    if row is None:
        raise UnknownOffset(
            f"offset {offset} of target {topic}-{partition} holds no record that flow {flow} "
            "brought: it is behind the end, the marker of a transaction, or of another producer; "
            "`mirrorlake translate --reverse` finds the next one"
        )
    return TracedRecord(flow, row["topic"], partition, row["offset"]), row["generation"]


def newest_with_key(
    lake: Reader, flow: str, topic: str, key: str, since: datetime | None
) -> tuple[TracedRecord, int]:
    """The newest staged record with a key (text, or bytes as hexadecimal digits after 0x), and the
    generation of its topic.

    Raises InputError if there is none, or the digits are invalid.
    """
    since_ms = -(2**63) if since is None else _ms(since)
    row = _row(lake, "trace_key", flow=flow, topic=topic, key=_digits(key), since_ms=since_ms)
    if row is None:
        later = "" if since is None else f" with a timestamp since {since:%Y-%m-%d %H:%M:%S} UTC"
        raise InputError(
            f"no staged record of topic {topic} has the key {key}{later}; keys are compared byte "
            "by byte"
        )
    return TracedRecord(flow, topic, row["partition"], row["offset"]), row["generation"]


def flow_state_of(lake: Reader, flow: str, topic: str) -> FlowRun:
    """The state of a flow, from the tables alone."""
    (row,) = lake.query_rows("trace_standing", flow=flow, topic=topic)
    setting = "paused" if row["is_paused"] else "disabled" if row["enabled"] is False else None
    return FlowRun(
        setting, row["mode"], row["sampled_at"], row["quiet_seconds"] or FlowRun.quiet_seconds
    )


def _batches(lake: Reader, facts: Facts) -> dict[str, Any]:
    """The sizes of the batches that landed the record and that produced it."""
    batches: dict[str, Any] = {}
    keys = facts.place.of_partition
    if facts.record is not None and facts.record["batch_id"] is not None:
        batches["batch"] = _row(lake, "trace_batch", batch_id=facts.record["batch_id"], **keys)
    if facts.mapped is not None and not facts.is_merged:
        batches["produced"] = _row(
            lake, "trace_produced", batch_id=facts.mapped["batch_id"], **keys
        )
    return batches


def _history(lake: Reader, facts: Facts) -> dict[str, Any]:
    """The partition's incidents, the flow's changes and pauses between writing and producing."""
    flow, topic, partition, _ = facts.place
    mirror = (facts.mapped or facts.newest or {}).get("target_topic")
    target = mirror or topic
    until = facts.produced_at or facts.now
    landed = facts.landed_at or facts.now
    since = max(facts.written_at or landed - _LOOK_BACK, landed - _LOOK_BACK)
    since_ms, age = _ms(since), facts.now - since
    gap_ms = next(gap for days, gap in PAUSES_MS if days is None or age < timedelta(days=days))
    later = _ms(until + timedelta(minutes=2))  # to include the first sample after a pause
    incidents = lake.query_rows(
        "trace_incidents",
        flow=flow,
        topic=topic,
        target_topic=target,
        mirror=mirror,
        partition=partition,
    )
    return {
        "incidents": [
            row
            for row in incidents
            if facts.record is None
            or row["first_offset"] is None
            or row["generation"] == facts.record["generation"]
        ],
        "changes": lake.query_rows(
            "trace_changes", flow=flow, target_topic=target, since_ms=since_ms, until_ms=_ms(until)
        ),
        "pauses": lake.query_rows(
            "trace_pauses",
            flow=flow,
            since_ms=since_ms,
            until_ms=later,
            gap_ms=gap_ms,
            first_gap_ms=_FIRST_GAP_MS,
        ),
    }


def _passed(lake: Reader, place: TracedRecord, generation: int) -> FactRow | None:
    """The flow's progress in a partition's generation; None if that of the record is unknown."""
    if generation == ANY_GENERATION:
        return None
    return _row(lake, "trace_passed", generation=generation, **place._asdict())


def _newest_sample(lake: Reader, place: TracedRecord, now: datetime) -> FactRow | None:
    ahead = now + timedelta(minutes=5)  # allows for clocks ahead of ours
    for back in _NEWEST:
        if sample := _sample(lake, place, ahead, back):
            return sample
    return _sample(lake, place, ahead, ahead - datetime(1970, 1, 1))


def _sample(
    lake: Reader,
    place: TracedRecord,
    until: datetime | None,
    back: timedelta,
    generation: int = ANY_GENERATION,
) -> FactRow | None:
    if until is None:
        return None
    keys = {**place.of_partition, "generation": generation}
    keys |= {"since_ms": _ms(until - back), "until_ms": _ms(until)}
    return _row(lake, "trace_sample", **keys)


def _backlog(lake: Reader, facts: Facts) -> int | None:
    if facts.landed_at is None or facts.record is None or facts.is_merged:
        return None
    offset = facts.place.offset
    keys = {**facts.place.of_partition, "generation": facts.record["generation"]}
    (done,) = lake.query_rows("trace_done", offset=offset, until_ms=_ms(facts.landed_at), **keys)
    (row,) = lake.query_rows(
        "trace_backlog", first=done["source_last"] + 1, last=offset - 1, **keys
    )
    return int(row["record_count"])


def _readers(lake: Reader, facts: Facts) -> list[FactRow]:
    source, _, target = facts.place.flow.partition("->")
    mapped = facts.mapped if facts.mapped is not None and facts.mapped["lives"] else None
    where: dict[str, Any] = {"target_topic": None, "target_offset": _GREATEST}
    where |= {"target_generation": 0, "generation": 0}
    if mapped is not None:
        where = {name: mapped[name] for name in where}
    where["generation"] = (facts.record or facts.mapped or where)["generation"]
    keys = {**where, **facts.place._asdict()}
    return [*lake.query_rows("trace_readers", back=f"{target}->{source}", **keys)]


def _row(lake: Reader, query: str, **keys: Any) -> FactRow | None:
    """The first row of a query's answer, if it has one."""
    rows = lake.query_rows(query, **keys)
    return rows[0] if rows else None


def _digits(key: str) -> str:
    """A key as hexadecimal digits."""
    if not key.startswith("0x"):
        return key.encode().hex().upper()
    try:
        return bytes.fromhex(key[2:]).hex().upper()
    except ValueError:
        raise InputError(
            f"the key {key} is not of hexadecimal digits, two a byte, behind 0x"
        ) from None


def _ms(at: datetime) -> int:
    zoned = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    return int(zoned.timestamp() * 1000)
