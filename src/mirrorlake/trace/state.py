"""Where a record is now, and whether an operator has to act. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from mirrorlake.run.attention import no_decision
from mirrorlake.trace.facts import FactRow, Facts

#: Kinds of incidents that hold records up. All others (of control, of comparisons) do not.
LANDING_KINDS = frozenset(
    """
    source_truncated source_rewound source_refused source_data_lost topic_recreated landing_failed
    landing_gap
    """.split()
)
PRODUCING_KINDS = frozenset(
    """
    target_refused target_recreated target_lost position_lost stage_trimmed topic_refused
    map_behind map_unknown map_contradiction cluster_unreachable flow_waits flow_stopped
    """.split()
)
HOLDING_KINDS = LANDING_KINDS | PRODUCING_KINDS
#: Kinds that stop a partition at an offset, but no record before it.
_IN_ORDER = frozenset(
    {
        *("target_refused", "target_lost", "stage_trimmed", "position_lost", "source_truncated"),
        *("map_behind", "map_unknown"),
    }
)
#: Kinds that concern only the offsets that they name: the records behind go on.
_OF_OFFSETS = frozenset({"landing_gap"})
#: The text for a record that an operator gave up, by incident kind and choice.
_GIVEN_UP = {
    ("target_refused", "skip"): "the target refused it",
    ("target_lost", "accept"): "it was at the target, which lost it",
    ("stage_trimmed", "continue"): "the stage had not got it when the flow came there",
}


@dataclass(frozen=True)
class State:
    """Where a record is: a word, whether an operator must act before it goes on, a sentence."""

    name: str
    needs_somebody: bool
    sentence: str


def state_of(facts: Facts) -> State:
    """Return where the record is now."""
    if facts.mapped is not None:
        return _mapped(facts, facts.mapped)
    if facts.record is not None:
        return _staged(facts)
    return _not_staged(facts)


def holds(incident: FactRow, offset: int, kinds: frozenset[str] = HOLDING_KINDS) -> bool:
    """Whether an incident holds the record at an offset up: a refused record stops only those from
    its own offset on, and a gap of landing no other ones."""
    behind = incident["kind"] in _IN_ORDER and (incident["first_offset"] or 0) > offset
    elsewhere = incident["kind"] in _OF_OFFSETS and not covers(incident, offset)
    return incident["kind"] in kinds and not (behind or elsewhere)


def covers(incident: FactRow, offset: int) -> bool:
    """Whether an incident names the offset."""
    first, last = incident["first_offset"], incident["last_offset"]
    return first is not None and last is not None and first <= offset <= last


def _mapped(facts: Facts, mapped: FactRow) -> State:
    where = f"{mapped['target_topic']}-{mapped['target_partition']}"
    if mapped["lives"]:
        return State(
            "at_target", False, f"it is at the target: {where}, offset {mapped['target_offset']}"
        )
    waiting = _open(facts, "target_recreated")
    detail = (
        f"it was brought to {where}, which was deleted or made again since: its offset there "
        "means nothing any more"
    )
    return State(
        "target_gone", bool(waiting), detail + (_decide(facts, waiting[-1]) if waiting else "")
    )


def _staged(facts: Facts) -> State:
    assert facts.record is not None
    if facts.record["is_echo"]:
        return State(
            "echo", False, "it came from the target itself (provenance), so the flow leaves it out"
        )
    if facts.parked is not None:
        return _parked(facts.parked)
    offset = facts.place.offset
    for incident in facts.incidents:
        choice = incident["resolution"]
        detail = _GIVEN_UP.get((incident["kind"], choice))
        if detail is not None and covers(incident, offset) and incident["is_of_mirror"]:
            how = f"and it was given up (`resolve --choice {choice}`): it stays in `records`"
            return State("given_up", False, f"{detail}, {how}")
    if (state := _left_behind(offset, facts.passed or {})) is not None:
        return state
    return _waiting(facts, HOLDING_KINDS - LANDING_KINDS, "it is staged and not yet produced")


def _left_behind(offset: int, passed: FactRow) -> State | None:
    """The state of a staged record that the flow will not reach any more; None if it will."""
    if passed.get("forgotten_at") is not None:
        return _forgotten(passed)
    first, last = passed.get("first_offset"), passed.get("source_last")
    if first is not None and offset < first:
        detail = f"it is staged for other flows: this one begins at offset {first} (`start`)"
        return State("before_start", False, detail)
    if last is None or offset > last:
        return None
    detail = f"the flow has gone on behind it, up to offset {last} by its map, and has not sent it"
    if (sent := passed.get("replayed_at")) is not None:
        detail += f"; it was replayed at {sent:%Y-%m-%d %H:%M:%S}, out of order"
        return State("replayed", False, detail)
    detail += "; it is staged: `mirrorlake replay --into-mirror` sends it"
    return State("passed_over", True, detail)


def _forgotten(known: FactRow) -> State:
    """The state of a record that `forget` deletes from the stage before the flow produced it."""
    at = known["forgotten_at"]
    detail = f"`mirrorlake forget` takes it out of the stage since {at:%Y-%m-%d %H:%M}"
    return State("forgotten", False, f"{detail}, and the flow does not bring it")


def _parked(parked: FactRow) -> State:
    refused = f"the target refused it ({parked['reason']}), and the flow went on behind it"
    sent = parked["replayed_at"]
    if sent is not None:
        detail = (
            f"{refused}; it was sent again at {sent:%Y-%m-%d %H:%M:%S}, out of order and with "
            "no row in the map"
        )
        return State("replayed", False, detail)
    detail = (
        f"{refused} at {parked['parked_at']:%Y-%m-%d %H:%M:%S}: it waits in `parked` for "
        "`mirrorlake replay --parked`"
    )
    return State("parked", True, detail)


def _waiting(facts: Facts, kinds: frozenset[str], reached: str) -> State:
    """The state of a record that is not at the target yet: what it waits for."""
    offset = facts.place.offset
    holding = [
        incident
        for incident in facts.incidents
        if holds(incident, offset, kinds) and incident["is_of_mirror"]
    ]
    opened = [incident for incident in holding if incident["resolved_at"] is None]
    named = [incident for incident in opened if covers(incident, offset)]
    if named and named[-1]["kind"] == "target_refused":
        detail = f"the target refused it: {named[-1]['detail']}{_decide(facts, named[-1])}"
        return State("refused", True, detail)
    if opened:
        cause = (named or opened)[-1]
        detail = (
            f"{reached}: {cause['kind']} is open since {_minute(cause)}: "
            f"{cause['detail']}{_decide(facts, cause)}"
        )
        return State("blocked", True, detail)
    stopped = [incident for incident in holding if incident["resolution"] == "stop"]
    if stopped:
        what = "the partition" if stopped[-1]["partition"] is not None else "the topic"
        detail = (
            f"{reached}: {what} was stopped by a decision about {stopped[-1]['kind']} "
            f"({_minute(stopped[-1])})"
        )
        return State("stopped", True, detail)
    return _of_flow(facts, reached)


def _of_flow(facts: Facts, reached: str) -> State:
    state = facts.flow_state
    if state.setting is not None:
        paused = state.setting == "paused"
        what = "its topic or flow is paused" if paused else "its flow is disabled"
        detail = f"{reached}: {what}, and it goes on where it was when that ends"
        return State(state.setting, True, detail)
    if not _runs(facts):
        at = state.sampled_at or (facts.newest or {}).get("sampled_at")
        last = "" if at is None else f" (its newest sample is of {at:%Y-%m-%d %H:%M:%S})"
        scheduled, what = state.mode == "once", "no process runs the flow"
        if scheduled:
            what = "the flow is run by `run --once`, and the next run brings it"
        return State("not_running", not scheduled, f"{reached}: {what}{last}")
    detail = f"{reached}: the flow is running, and nothing is known to hold it up"
    return State("waiting", False, detail)


def _runs(facts: Facts) -> bool:
    at = facts.flow_state.sampled_at
    return at is not None and facts.now - at <= timedelta(seconds=facts.flow_state.quiet_seconds)


def _not_staged(facts: Facts) -> State:
    offset, newest, around = facts.place.offset, facts.newest, facts.around or {}
    if around.get("forgotten_at") is not None:
        return _forgotten(around)
    if around.get("removed_at") is not None:
        detail = (
            f"the stage does not hold it since {around['removed_at']:%Y-%m-%d %H:%M}: `maintain` "
            "deleted it before the flow had it, or landing began behind it"
        )
        waits = _open(facts, "stage_trimmed")
        return State("removed", bool(waits), detail + (_decide(facts, waits[-1]) if waits else ""))
    if (state := _lost(facts)) is not None:
        return state
    if newest is None:
        if around.get("behind") is None:
            detail = (
                "it is not known whether there is a record: no sample says what the source has, "
                "and the stage holds nothing behind this offset"
            )
            return State("unknown", True, detail)
    elif offset >= newest["source_end"]:
        if offset < (newest["source_high_watermark"] or 0):
            return _in_transaction(facts, newest)
        at, end = newest["sampled_at"], newest["source_end"]
        detail = f"it is beyond the end: at {at:%Y-%m-%d %H:%M:%S} the source's log ended at {end}"
        return State("beyond_end", False, detail)
    if newest is not None and offset >= newest["staged_end"]:
        return _waiting(facts, HOLDING_KINDS, "it is at the source and not yet landed")
    if around.get("before") is None and newest is not None and offset < newest["source_start"]:
        start = newest["source_start"]
        detail = f"the source's log begins at {start}: it was gone before the flow began"
        return State("before_start", False, detail)
    return State("no_record", False, _no_record(around))


def _in_transaction(facts: Facts, newest: FactRow) -> State:
    """The state of a record that the source does not give out yet to read_committed consumers."""
    since = newest["transaction_since"]
    open_since = "" if since is None else f" since {since:%Y-%m-%d %H:%M:%S}"
    reached = f"it is at the source, in or behind a transaction that is open{open_since}"
    state = _waiting(facts, HOLDING_KINDS, reached)
    if state.name != "waiting":
        return state
    return replace(state, sentence=f"{reached}: the flow is running, and lands it once that ends")


def _lost(facts: Facts) -> State | None:
    """The state of a record that was gone at the source, or left out, when it was to be landed;
    None if no incident names it."""
    named = [incident for incident in facts.incidents if covers(incident, facts.place.offset)]
    gaps = [incident for incident in named if incident["kind"] == "landing_gap"]
    truncated = [incident for incident in named if incident["kind"] == "source_truncated"]
    if truncated and truncated[-1]["resolved_at"] is not None:
        detail = (
            "it is lost: the source had deleted it before it was landed "
            f"({_minute(truncated[-1])}), which was accepted"
        )
        return State("lost", False, detail)
    if not gaps:
        return None
    waits = [incident for incident in gaps if incident["resolved_at"] is None]
    detail = (
        "it is lost, if there was a record: the stage does not hold it, and landing left out "
        f"records among these offsets ({_minute(gaps[-1])}): {gaps[-1]['detail']}"
    )
    return State("lost", bool(waits), detail + (_decide(facts, waits[-1]) if waits else ""))


def _no_record(around: FactRow) -> str:
    detail = (
        "there is no record at this offset: it is the marker of a transaction, was aborted, "
        "or was compacted away"
    )
    named = {"before it": around.get("before"), "behind it": around.get("behind")}
    beside = " and ".join(f"{at} {where}" for where, at in named.items() if at is not None)
    return f"{detail}; the stage has {beside}" if beside else detail


def _open(facts: Facts, kind: str) -> Sequence[FactRow]:
    return [
        incident
        for incident in facts.incidents
        if incident["kind"] == kind and incident["resolved_at"] is None
    ]


def _decide(facts: Facts, incident: FactRow) -> str:
    """The end of a sentence on what to do about an open incident."""
    if (helps := no_decision(incident["kind"])) is not None:
        return f"; {helps}"
    topic = "" if incident["topic"] is None else f" --topic {incident['topic']}"
    partition = "" if incident["partition"] is None else f" --partition {incident['partition']}"
    return f"; `mirrorlake resolve --flow '{incident['flow']}'{topic}{partition}` shows the choices"


def _minute(incident: FactRow) -> str:
    return f"{incident['at']:%Y-%m-%d %H:%M:%S}"
