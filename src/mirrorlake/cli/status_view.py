"""`mirrorlake status` for a person: what needs somebody first, then a line a flow, then what is proven."""

from typing import TYPE_CHECKING, Any

from mirrorlake.durations import duration
from mirrorlake.terminal import plain_table

if TYPE_CHECKING:
    from rich.console import Console

#: Of the ten minutes that ended with the newest batch: soon after a start, of the backlog too.
_LATENCIES = ("p50, 10 min", "p99, 10 min")


def show_status(out: "Console", found: dict[str, Any]) -> None:
    """Print the document of `mirrorlake.OpenLake.status`."""
    for sentence in found["attention"]:
        _mark(out, "red", "needs you", sentence)
    for sentence in found["unchecked"]:
        _mark(out, "yellow", "unchecked", sentence)
    if found["healthy"]:
        _mark(out, "green", "healthy", "nothing needs you")
    table = plain_table("flow", "state", "lag", *_LATENCIES, "records", "topics", "last batch", "batches of a day")
    for item in found["flows"]:
        table.add_row(*_cells(item))
    out.print(table)
    _show_proofs(out, found["proofs"])


def _cells(item: dict[str, Any]) -> tuple[str, ...]:
    known = item.get("lag_records") is not None
    lag = f"{item['lag_records']:,} records, {duration(1000 * (item['lag_seconds'] or 0))}" if known else "-"
    held = max(0, (item.get("lag_to_high_watermark") or 0) - (item.get("lag_records") or 0))
    lag += f" ({held:,} more behind open transactions)" if held else ""
    percentiles = (item.get(f"replication_{name}_ms") for name in ("p50", "p99"))
    last = item.get("last_produced_at")
    topics = f"{item['topics']}, {item['partitions']} partitions" if item.get("topics") else "-"
    parked = f" ({item['parked']:,} parked)" if item.get("parked") else ""
    ways = f"{item['short_batches']} short, {item['long_batches']} long" if "short_batches" in item else "-"
    return (
        item["flow"],
        item["standing"],
        lag,
        *("-" if value is None else duration(value) for value in percentiles),
        "-" if item.get("record_count") is None else f"{item['record_count']:,}{parked}",
        topics,
        "-" if last is None else f"{last:%Y-%m-%d %H:%M:%S}",
        ways,
    )


def _show_proofs(out: "Console", proofs: list[dict[str, Any]]) -> None:
    """What of each topic is proven by content, where something was compared."""
    compared = [item for item in proofs if item["audited_at"] is not None]
    if not compared:
        return
    table = plain_table("flow", "topic", "records", "proven", "since", "compared last", "ranges that differ")
    for item in compared:
        times = ("-" if item[at] is None else f"{item[at]:%Y-%m-%d %H:%M}" for at in ("proven_since", "audited_at"))
        share, differing = f"{item['proven_share']:.2%}", str(item["differing_ranges"])
        table.add_row(item["flow"], item["topic"], f"{item['mapped_records']:,}", share, *times, differing)
    out.print(table)


def _mark(out: "Console", style: str, word: str, text: str) -> None:
    from rich.text import Text

    out.print(Text.assemble((word, style), f": {text}"), soft_wrap=True)
