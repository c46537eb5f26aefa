"""One record's life: what happened when, what held it up, and which groups read past it. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from mirrorlake.durations import duration
from mirrorlake.trace.facts import FactRow, Facts
from mirrorlake.trace.state import covers, holds, state_of

#: A shorter wait needs no explanation, and is within the difference of two hosts' clocks.
_NOTHING_MS = 1_000
_ZERO = datetime(1970, 1, 1)


def tell(facts: Facts) -> dict[str, Any]:
    """The document of a trace: the attributes of `mirrorlake.library.tracing.Trace`."""
    state, mapped = state_of(facts), facts.mapped
    return {
        **facts.place._asdict(),
        "generation": None if facts.record is None else facts.record["generation"],
        "state": state.name,
        "needs_somebody": state.needs_somebody,
        "sentence": state.sentence,
        "target_topic": None if mapped is None else mapped["target_topic"],
        "target_partition": None if mapped is None else mapped["target_partition"],
        "target_offset": None if mapped is None else mapped["target_offset"],
        "latency_ms": _latency(facts),
        "stages": [*_stages(facts)],
        "held_up": [*_held_up(facts)],
        "readers": [dict(row) for row in facts.readers],
        "incidents": [dict(row) for row in facts.incidents if _meets(facts, row)],
        "changes": [dict(row) for row in facts.changes],
    }


def _latency(facts: Facts) -> dict[str, int | None]:
    written, landed, produced = facts.written_at, facts.landed_at, facts.produced_at
    return {
        "landing": _ms(written, landed),
        "producing": _ms(landed, produced),
        "replication": _ms(written, produced),
    }


def _stages(facts: Facts) -> Iterator[dict[str, Any]]:
    """Written, landed, produced, and each group that read past it; `after_ms`: since then."""
    record, mapped = facts.record, facts.mapped
    if record is not None:
        yield _stage("written", record["written_at"], None, _written_text(record))
        text = f"landed in the stage, in batch {record['batch_id']}{_size_text(facts.batch)}"
        yield _stage("landed", record["landed_at"], record["written_at"], text)
    if mapped is not None:
        yield _stage(
            "produced", mapped["produced_at"], facts.landed_at, _produced_text(facts, mapped)
        )
    for row in sorted(
        (row for row in facts.readers if row["is_past"]), key=lambda row: row["passed_at"]
    ):
        since = facts.written_at if row["side"] == "source" else facts.produced_at
        text = (
            f"group {row['group_id']} is past it at the {row['side']} (position {row['position']})"
        )
        yield _stage("read", row["passed_at"], since, f"{text}, seen by its checkpoints")


def _stage(name: str, at: datetime | None, before: datetime | None, text: str) -> dict[str, Any]:
    return {"stage": name, "at": at, "after_ms": _ms(before, at), "said": text}


def _written_text(record: FactRow) -> str:
    by = "written (CreateTime)"
    if record["timestamp_type"] == 1:
        by = "appended to the source's log (LogAppendTime)"
    if record.get("timestamp_ms") is not None:
        by += f" with a time of {record['timestamp_ms']} ms, which is no date"
    sizes = {name: record[f"{name}_bytes"] for name in ("key", "value")}
    parts = [
        f"no {name}" if size is None else f"a {name} of {_count(size, 'byte')}"
        for name, size in sizes.items()
    ]
    return ", ".join([by, *parts])


def _size_text(batch: FactRow | None) -> str:
    """The size of a batch; empty if unknown."""
    if batch is None or batch.get("record_count") is None:
        return ""
    records = _count(batch["record_count"], "record")
    return f" of {records}, {batch['of_partition']:,} of its partition"


def _produced_text(facts: Facts, mapped: FactRow) -> str:
    where = (
        f"{mapped['target_topic']}-{mapped['target_partition']} offset {mapped['target_offset']}"
    )
    if facts.is_merged:
        return (
            f"acknowledged by the target, by then: {where} (rows of the map of batches "
            f"{mapped['first_batch_id']} to {mapped['batch_id']} were merged, so its own batch is "
            "not known any more)"
        )
    if facts.written_at == _ZERO:
        where += ", with a time of 1 ms for its 0, which librdkafka cannot send"
    size, of = facts.produced or {}, _size_text(facts.produced)
    way = f", the {size['way']} way" if size.get("way") else ""
    return f"acknowledged by the target: {where}, in batch {mapped['batch_id']}{of}{way}"


def _held_up(facts: Facts) -> Iterator[dict[str, Any]]:
    """What held, or holds, the record up, by time; each with `what`, `since`, `until`, `said`."""
    causes = [
        *_pauses(facts),
        *_incidents(facts),
        *_edits(facts),
        *_before_landing(facts),
        *_before_producing(facts),
    ]
    yield from sorted(causes, key=lambda cause: cause["since"] or datetime.min)


def _cause(what: str, since: datetime | None, until: datetime | None, text: str) -> dict[str, Any]:
    return {"what": what, "since": since, "until": until, "said": text}


def _pauses(facts: Facts) -> Iterator[dict[str, Any]]:
    begin, end = facts.written_at or facts.landed_at, facts.produced_at or facts.now
    for row in facts.pauses:
        if begin is not None and row["until"] > begin and row["since"] < end:
            since, until = row["since"], row["until"]
            if row.get("is_first"):
                text = (
                    "the flow started for the first time in a week at least: its first sample "
                    f"is of {until:%H:%M:%S}"
                )
                yield _cause("first start", since, min(until, facts.landed_at or until), text)
            else:
                text = (
                    f"no process ran the flow for {duration(_ms(since, until) or 0)}: no sample "
                    "was taken"
                )
                yield _cause("not running", since, until, text)


def _incidents(facts: Facts) -> Iterator[dict[str, Any]]:
    for row in facts.incidents:
        if _meets(facts, row):
            how = "still open" if row["resolved_at"] is None else f"closed: {row['resolution']}"
            own = ", which names this record" if covers(row, facts.place.offset) else ""
            text = f"{row['kind']}{own}: {row['detail'] or 'no detail'} ({how})"
            yield _cause("incident", row["at"], row["resolved_at"], text)


def _meets(facts: Facts, row: FactRow) -> bool:
    """Whether an incident held records up while this one was on its way, or names this one."""
    begin, end = facts.written_at or facts.landed_at, facts.produced_at or facts.now
    if not holds(row, facts.place.offset):
        return False
    if covers(row, facts.place.offset):
        return True
    over = row["resolved_at"] is not None and begin is not None and row["resolved_at"] < begin
    return row["at"] <= end and not over


def _edits(facts: Facts) -> Iterator[dict[str, Any]]:
    for row in facts.changes:
        edited = row["kind"] == "topology"
        what = "the topology file was edited" if edited else f"{row['kind']} of {row['resource']}"
        shape = f" ({row['before'] or 'none'} to {row['after']})" if row["after"] else ""
        text = f"{what}{shape}: {row['outcome']}" + (f", {row['error']}" if row["error"] else "")
        yield _cause("change", row["at"], row["at"], text)


def _before_landing(facts: Facts) -> Iterator[dict[str, Any]]:
    """From the last sample before landing: the backlog before the record at the source, or that the
    source did not have it yet."""
    sample, landed, offset = facts.at_landing, facts.landed_at, facts.place.offset
    if (
        sample is None
        or landed is None
        or (facts.pauses and sample["sampled_at"] < facts.pauses[-1]["until"])
    ):
        return
    at, waited = sample["sampled_at"], _ms(facts.written_at, landed) or 0
    if sample["source_end"] is None or sample["staged_end"] is None:
        return
    if offset < sample["source_end"]:
        ahead = offset - sample["staged_end"]
        if ahead > 0 and waited > _NOTHING_MS:
            text = (
                f"{_count(ahead, 'offset')} of its partition waited in front of it at the "
                f"source at {at:%H:%M:%S}"
            )
            yield _cause("backlog at the source", at, landed, text)
    elif offset < (sample["source_high_watermark"] or 0):
        if waited > _NOTHING_MS:
            text = (
                f"at {at:%H:%M:%S} the source had it in or behind an open transaction, and gives "
                "out nothing from there on until that ends"
            )
            yield _cause("transaction", sample["transaction_since"] or at, landed, text)
    elif waited - (_ms(at, landed) or 0) > _NOTHING_MS:
        early = duration(waited - (_ms(at, landed) or 0))
        text = (
            f"at {at:%H:%M:%S} the source had not got it: at least {early} of its wait passed "
            "between its timestamp and the source's log (a late or slow producer, or one whose "
            "clock is behind)"
        )
        yield _cause("producer", facts.written_at, at, text)


def _before_producing(facts: Facts) -> Iterator[dict[str, Any]]:
    waited = _ms(facts.landed_at, facts.produced_at or facts.now) or 0
    if facts.backlog and waited > _NOTHING_MS:
        text = (
            f"{_count(facts.backlog, 'staged record')} of its partition in front of it had not "
            "been produced by then"
        )
        yield _cause("backlog in the stage", facts.landed_at, facts.landed_at, text)


def _ms(before: datetime | None, after: datetime | None) -> int | None:
    if before is None or after is None:
        return None
    return round((after - before) / timedelta(milliseconds=1))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
