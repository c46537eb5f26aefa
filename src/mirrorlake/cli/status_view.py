"""`mirrorlake status` for a person: what needs attention first, then a line a flow, then what is
proven."""

from typing import TYPE_CHECKING, Any

from mirrorlake.durations import duration
from mirrorlake.terminal import plain_table

if TYPE_CHECKING:
    from rich.console import Console

#: Of the ten minutes that ended with the newest batch: soon after a start, of the backlog too.
_LATENCIES = ("p50, 10 min", "p99, 10 min")


def show_status(out: "Console", document: dict[str, Any]) -> None:
    """Print the document of `mirrorlake.OpenLake.status`."""
    for sentence in document["attention"]:
        _mark(out, "red", "needs you", sentence)
    for sentence in document["unchecked"]:
        _mark(out, "yellow", "unchecked", sentence)
    if document["healthy"]:
        _mark(out, "green", "healthy", "nothing needs you")
    table = plain_table(
        "flow", "state", "lag", *_LATENCIES, "records", "topics", "last batch", "batches of a day"
    )
    for flow in document["flows"]:
        table.add_row(*_cells(flow))
    out.print(table)
    _show_proofs(out, document["proofs"])


def _cells(flow: dict[str, Any]) -> tuple[str, ...]:
    known = flow.get("lag_records") is not None
    lag = (
        f"{flow['lag_records']:,} records, {duration(1000 * (flow['lag_seconds'] or 0))}"
        if known
        else "-"
    )
    held = max(0, (flow.get("lag_to_high_watermark") or 0) - (flow.get("lag_records") or 0))
    lag += f" ({held:,} more behind open transactions)" if held else ""
    percentiles = (flow.get(f"replication_{name}_ms") for name in ("p50", "p99"))
    last = flow.get("last_produced_at")
    topics = f"{flow['topics']}, {flow['partitions']} partitions" if flow.get("topics") else "-"
    parked = f" ({flow['parked']:,} parked)" if flow.get("parked") else ""
    ways = (
        f"{flow['short_batches']} short, {flow['long_batches']} long"
        if "short_batches" in flow
        else "-"
    )
    return (
        flow["flow"],
        flow["standing"],
        lag,
        *("-" if value is None else duration(value) for value in percentiles),
        "-" if flow.get("record_count") is None else f"{flow['record_count']:,}{parked}",
        topics,
        "-" if last is None else f"{last:%Y-%m-%d %H:%M:%S}",
        ways,
    )


def _show_proofs(out: "Console", proofs: list[dict[str, Any]]) -> None:
    """What of each topic is proven by content, where something was compared."""
    compared = [proof for proof in proofs if proof["audited_at"] is not None]
    if not compared:
        return
    table = plain_table(
        "flow", "topic", "records", "proven", "since", "compared last", "ranges that differ"
    )
    for proof in compared:
        times = (
            "-" if proof[at] is None else f"{proof[at]:%Y-%m-%d %H:%M}"
            for at in ("proven_since", "audited_at")
        )
        share, differing = f"{proof['proven_share']:.2%}", str(proof["differing_ranges"])
        table.add_row(
            proof["flow"], proof["topic"], f"{proof['mapped_records']:,}", share, *times, differing
        )
    out.print(table)


def _mark(out: "Console", style: str, word: str, text: str) -> None:
    from rich.text import Text

    out.print(Text.assemble((word, style), f": {text}"), soft_wrap=True)
