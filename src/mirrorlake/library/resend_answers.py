"""The library's answers of replays and restores."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mirrorlake.library.answers import Rows
from mirrorlake.library.resent import Resent, shown
from mirrorlake.native.exact import FIRST_MS, LAST_MS

if TYPE_CHECKING:  # modules that need Spark are imported where they are used
    from mirrorlake.resend.extras import ExtrasDone
    from mirrorlake.resend.note import ResentTopic
    from mirrorlake.resend.sender import SendOutcome
    from mirrorlake.resend.steps import PlannedResend


def planned_answer(planned: "PlannedResend") -> Resent:
    """What would be sent."""
    warnings = [*planned.warnings]
    warnings += [
        f"topic {topic.name} would be made with {topic.partitions} partitions"
        for topic in planned.makes
    ]
    if planned.continued:
        warnings.append(
            f"{planned.resend.name} has begun before; it would go on with what it has not sent"
        )
    examples = [
        {**row, "timestamp": _moment(row["timestamp"])}
        | {name: shown(row[name]) for name in ("key", "value")}
        for row in planned.examples
    ]
    topics = [_topic(part, part.records) for part in planned.resend.parts]
    return Resent(
        Rows(topics),
        None,
        dry_run=True,
        continued=planned.continued,
        complete=False,
        examples=Rows(examples),
        warnings=warnings,
    )


def with_extras(resent: Resent, done: "ExtrasDone", reached: Sequence[Mapping[str, Any]]) -> Resent:
    """Add what a restore did besides records, and the end of each restored partition."""
    names = ("topic", "partition", "end")
    ends = Rows(
        {**{name: row[name] for name in names}, "newest_at": _moment(row["newest_ms"])}
        for row in reached
    )
    warnings = [*resent.warnings, *done.warnings]
    warnings += [
        f"{row['topic']}: {row['after']} is not set: {row['error']}"
        for row in done.configs
        if row["error"]
    ]
    warnings += [
        f"an ACL on {row['name']} is not made: {row['error']}" for row in done.acls if row["error"]
    ]
    warnings += [
        f"group {row['group']}, {row['to_topic']}-{row['partition']}: {row['detail']}"
        for row in done.groups
        if row["done"] in ("kept", "failed")
    ]
    return replace(
        resent,
        warnings=warnings,
        reached=ends,
        configs=Rows(done.configs),
        acls=Rows(done.acls),
        groups=Rows(done.groups),
    )


def _moment(ms: int) -> datetime | None:
    """A record's timestamp; None if it is out of range for a date, as nanoseconds are."""
    return datetime.fromtimestamp(ms / 1_000, timezone.utc) if FIRST_MS <= ms <= LAST_MS else None


def _topic(part: "ResentTopic", records: int) -> dict[str, Any]:
    return {"topic": part.topic, "target_topic": part.target_topic, "records": records}


def sent_answer(planned: "PlannedResend", outcome: "SendOutcome") -> Resent:
    """What was sent."""
    resend = planned.resend
    if not resend.records and resend.kind == "replay":
        return Resent(
            Rows(), None, False, False, True, warnings=["no record is picked; nothing was done"]
        )
    once_more = ": the same call sends all again" if resend.kind == "replay" else ""
    topics, warnings = [], [*planned.warnings, *(str(error) for error in outcome.refused)]
    complete = outcome.complete and not (outcome.unexplained or outcome.extras.lacking)
    if not outcome.complete and not outcome.refused:
        warnings.append("not all of it is done; the same call goes on")
    for part in resend.parts:
        records = outcome.records.get(part.target_topic, 0)
        topics.append(_topic(part, records))
        if outcome.complete and part.picked and records != part.records:
            left, complete = part.records - records, False
            warnings.append(
                f"{part.topic}: {left:,} records were refused again, or are gone; they stay parked"
            )
        elif outcome.complete and part.target_topic in outcome.unexplained:
            warnings.append(
                f"{part.topic}: {part.records:,} records were picked when it began and {records:,} "
                f"are at {part.target_topic}, though nothing of the lake says why; start over, "
                "into another topic, and compare"
            )
        elif outcome.complete and records != part.records:
            complete = False
            warnings.append(
                f"{part.topic}: {part.records:,} records were picked when it began and {records:,} "
                "are sent; the others have been deleted from the stage since, and there is nothing "
                f"to go on with{once_more}"
            )
    return Resent(Rows(topics), resend.name, False, planned.continued, complete, warnings=warnings)


def together(parts: Sequence[Resent], dry_run: bool, held: Sequence[str] = ()) -> Resent:
    """Join several flows' answers about parked records; `held`: sentences on those not sent."""
    some = [part for part in parts if part.topics]
    behind = [
        "they come out of order: records behind them in their partitions are at the target already"
    ]
    warnings = [line for part in some for line in part.warnings] + (behind if some else [])
    return Resent(
        Rows(row for part in some for row in part.topics),
        ", ".join(part.flow for part in some if part.flow) or None,
        dry_run,
        any(part.continued for part in some),
        not dry_run and all(part.complete for part in parts) and not held,
        warnings=[*warnings, *held] or ["nothing is parked"],
    )
