"""What `run` shows of itself while it goes on: phases, then a line a flow."""

import io
import logging
import threading
import time

import pytest

from mirrorlake.cli.replicate import drawn, living, logged
from mirrorlake.library.progress import Progress
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.samples import FlowLag
from mirrorlake.terminal import plain_console


def going() -> Progress:
    progress = Progress()
    progress.batch(
        "a->b",
        BatchReport(
            1,
            stage_version=1,
            record_count=12_000,
            reader="files",
            complete=True,
            replication_ms=(120, 300, 450),
        ),
    )
    progress.sampled("a->b", FlowLag(34, 2.4))
    progress.incidents = lambda: {"a->b": 2}
    return progress


def test_a_living_line_a_flow() -> None:
    console = plain_console(width=160)
    console.file = shown = io.StringIO()
    console.print(drawn(going()))
    for part in (
        "a->b",
        "12,000 records",
        "lag 34 records, 2 s",
        "latency 120 ms (p99 450 ms)",
        "2 open incidents",
    ):
        assert part in shown.getvalue()


def test_once_it_replicates_it_says_what_to_type_next() -> None:
    console = plain_console(width=160)
    console.file = shown = io.StringIO()
    console.print(drawn(Progress(), "type this"))
    assert "type this" not in shown.getvalue()
    console.print(drawn(going(), "type this"))
    assert shown.getvalue().splitlines()[-1].strip() == "type this"


def test_lines_of_the_log_stay_above_the_living_ones() -> None:
    console = plain_console(width=160)
    console.file, console._force_terminal = (shown := io.StringIO()), True
    console.is_interactive = True
    progress = going()
    with living(console, progress), progress.phase("opening the lake"):
        console.print("a line")
        pause, deadline = threading.Event(), time.monotonic() + 10
        while "opening" not in shown.getvalue() and time.monotonic() < deadline:
            pause.wait(0.05)
    text = shown.getvalue()
    assert "a line" in text and "opening the lake… 0 s" in text
    assert text.index("a line") < text.rindex("opening the lake")


def test_a_line_of_the_log_where_there_is_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    told = threading.Event()
    caplog.set_level(logging.INFO)
    handler = logging.Handler()
    handler.emit = lambda _record: told.set()  # type: ignore[method-assign]
    logging.getLogger("mirrorlake.cli.replicate").addHandler(handler)
    try:
        with logged(going(), 0.01):
            assert told.wait(10)
    finally:
        logging.getLogger("mirrorlake.cli.replicate").removeHandler(handler)
    found = next(record for record in caplog.records if record.name == "mirrorlake.cli.replicate")
    assert "lag 34 records, 2 s" in found.getMessage()
    assert found.facts["lag_records"] == 34 and found.facts["flow"] == "a->b"  # type: ignore[attr-defined]
