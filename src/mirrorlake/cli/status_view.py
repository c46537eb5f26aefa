"""`mirrorlake status` for a person: first what needs attention, a line a flow, what is proven."""

from typing import TYPE_CHECKING, Any

from mirrorlake.durations import duration
from mirrorlake.terminal import print_table

if TYPE_CHECKING:
    from rich.console import Console

#: Over the ten minutes up to the newest batch: soon after a start that includes the backlog.
_LATENCIES = ("p50, 10 min", "p99, 10 min")


def show_status(out: "Console", document: dict[str, Any]) -> None:
    """Print the document of `mirrorlake.OpenLake.status`."""
    for sentence in document["attention"]:
        _mark(out, "red", "needs you", sentence)
    for sentence in document["warnings"]:
        _mark(out, "yellow", "warning", sentence)
    for sentence in document["unchecked"]:
        _mark(out, "yellow", "unchecked", sentence)
    if document["healthy"]:
        checked = ", as far as was checked" if document["unchecked"] else ""
        warned = "; see the warnings above" if document["warnings"] else ""
        _mark(out, "green", "healthy", f"nothing needs you{checked}{warned}")
    columns = ("flow", "state", "lag", *_LATENCIES, "records", "topics", "last batch")
    print_table(out, *columns, "batches of a day", rows=map(_cells, document["flows"]))
    _show_workers(out, document["workers"])
    _show_proofs(out, document["proofs"])


def _show_workers(out: "Console", workers: list[dict[str, Any]]) -> None:
    """Which process does what, and which stand by, where Kafka decides that."""
    if workers:
        columns = ("work", "state", "host", "pid", "since")
        rows = ([worker[name] for name in columns] for worker in workers)
        print_table(out, *columns, rows=rows)


def _cells(flow: dict[str, Any]) -> tuple[object, ...]:
    lag = "-"
    if flow.get("lag_records") is not None:
        lag = f"{flow['lag_records']:,} records, {duration(1000 * (flow['lag_seconds'] or 0))}"
    held = max(0, (flow.get("lag_to_high_watermark") or 0) - (flow.get("lag_records") or 0))
    lag += f" ({held:,} more behind open transactions)" if held else ""
    percentiles = (flow.get(f"replication_{name}_ms") for name in ("p50", "p99"))
    last = flow.get("last_produced_at")
    topics = f"{flow['topics']}, {flow['partitions']} partitions" if flow.get("topics") else None
    parked = f" ({flow['parked']:,} parked)" if flow.get("parked") else ""
    known = "short_batches" in flow
    ways = f"{flow['short_batches']} short, {flow['long_batches']} long" if known else None
    return (
        flow["flow"],
        flow["standing"],
        lag,
        *(None if value is None else duration(value) for value in percentiles),
        None if flow.get("record_count") is None else f"{flow['record_count']:,}{parked}",
        topics,
        last and f"{last:%Y-%m-%d %H:%M:%S}",
        ways,
    )


def _show_proofs(out: "Console", proofs: list[dict[str, Any]]) -> None:
    """What of each topic is proven by content, where something was compared."""
    compared = [proof for proof in proofs if proof["audited_at"] is not None]
    if not compared:
        return
    columns = ("flow", "topic", "records", "proven", "gone", "since", "compared last", "differing")
    times = ("proven_since", "audited_at")
    rows = (
        (
            proof["flow"],
            proof["topic"],
            f"{proof['mapped_records']:,}",
            _percentage(proof["proven_share"]),
            # which nothing is left to compare with, as where a topic is compacted
            f"{proof['gone_records']:,}",
            *(proof[at] and f"{proof[at]:%Y-%m-%d %H:%M}" for at in times),
            proof["differing_ranges"],
        )
        for proof in compared
    )
    print_table(out, *columns, rows=rows)


def _percentage(share: float) -> str:
    """A share with two places, rounded down: 100 % is all of it."""
    return f"{int(share * 10_000 + 1e-6) / 100:.2f}%"


def _mark(out: "Console", style: str, word: str, text: str) -> None:
    from rich.text import Text

    out.print(Text.assemble((word, style), f": {text}"), soft_wrap=True)
