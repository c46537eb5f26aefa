"""Text from outside is shown as it is, in every command that prints some: brackets are no markup,
colons no emoji."""

import ast
import io
import json
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrorlake
from mirrorlake.cli import groups, inspect, local, resolve, upkeep
from mirrorlake.cli.context import Context
from mirrorlake.cli.importing import _show as show_import
from mirrorlake.cli.plan_view import show_plan
from mirrorlake.cli.replicate import drawn
from mirrorlake.config.topology import Topology
from mirrorlake.devtools.local.develop import ClusterStatus
from mirrorlake.lake.reader import QueryRows
from mirrorlake.library import lake as library
from mirrorlake.library import positions
from mirrorlake.library.answers import Resolved, Rows
from mirrorlake.library.capacity import Load, needs
from mirrorlake.library.internals import Internals
from mirrorlake.library.progress import Progress
from mirrorlake.mm2.importer.read import Imported
from mirrorlake.notebook.host import Laptop
from mirrorlake.run.totals import Totals
from mirrorlake.terminal import plain_console, plain_table, print_table, write_any_text
from tests.support.syntax import modules_with

SRC = Path(__file__).parents[3] / "src"
#: Swallowed as a style, refused as an end of none, and drawn as a picture, by Rich's markup.
ODD = "a[red]b[/c]:warning:[0]"


@pytest.fixture
def shown() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def shared(shown: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    """What commands share, with a lake and clusters that nobody asks, and both streams kept."""
    monkeypatch.setattr(Internals, "absence", None)
    made = Context(tmp_path / "mirrorlake.yml")
    for console in (made.out, made.err):
        console.file, console.width = shown, 4000
    document = {
        "clusters": {"a": {"bootstrap_servers": "x"}, "b": {"bootstrap_servers": "y"}},
        "lake": {"path": "."},
    }
    topology = Topology.model_validate({**document, "flows": {"a->b": None}})
    lake = made.__dict__["lake"] = mirrorlake.OpenLake(
        Internals(topology.lake, directory=tmp_path, topology=topology)
    )
    lake.internals.__dict__["connections"] = lake.internals.__dict__["tables"] = SimpleNamespace()
    return made


def of(shared: Context) -> typer.Context:
    return SimpleNamespace(obj=shared)  # type: ignore[return-value]


def test_plan(shared: Context, shown: io.StringIO) -> None:
    acl = dict.fromkeys(("pattern", "name", "principal", "host", "operation", "permission"), ODD)
    names = ("flow", "policy", "policy_sha256", "delivery", "compression", "provenance", "paused")
    topic = {
        **dict.fromkeys(("topic", "target_topic", "note", "reason"), ODD),
        "partitions": 1,
        "factor": 1,
    }
    topic |= {"holder": ODD, "held_records": 1}
    flow = {
        **dict.fromkeys(names, ODD),
        "topics": [{**topic, "action": act, "configs": {ODD: ODD}} for act in ("create", "refuse")],
        "configs": [dict.fromkeys(("target_topic", "key", "before", "after", "refusal"), ODD)],
        "acls": [{"action": "create", **acl}],
        "acls_withheld": [acl],
        "acls_left": [{**acl, "policy": ODD}],
        "heartbeats": [{"cluster": "a", "topic": ODD, "factor": 1}],
        "worker_topics": [{"cluster": "a", "topic": ODD, "factor": 1}],
        "unasked": None,
    }
    problem = {"severity": "refuse", "rule": "r", "sentence": ODD, "fix": ODD}
    totals = {**vars(Totals()), "offsets_at_source": None, "conflicts": 1}
    show_plan(
        shared.out,
        {
            "problems": [problem],
            "flows": [flow, {**flow, "topics": []}, {**flow, "unasked": ODD}],
            "totals": totals,
            "needs": vars(needs(Load(), "folder")),
        },
    )
    assert "this needs about" in shown.getvalue()
    assert (
        "waiting: unknown offsets at the source" in shown.getvalue()
        and "1 conflicts" in shown.getvalue()
    )
    assert shown.getvalue().count(ODD) >= 40
    assert shown.getvalue().count("[red]") == shown.getvalue().count(ODD), (
        "and nothing of ours is markup"
    )


def test_status(shared: Context, shown: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    alert = {
        "flow": "a->b",
        "alert": "lag",
        "topic": ODD,
        "partition": 0,
        "value": 2.0,
        "threshold": 1.0,
    }
    found = {
        "flows": [{"flow": ODD, "standing": ODD}],
        "topics": [],
        "incidents": [{"flow": "a->b", "kind": "k", "detail": ODD}],
        "alerts": [{**alert, "detail": ODD}],
        "unchecked": [ODD],
        "warnings": [ODD],
        "attention": [ODD],
        "proofs": [],
        "workers": [
            {"work": ODD, "state": "works", "host": "h", "pid": 1, "since": None, "flow": None}
        ],
        "healthy": True,
    }
    monkeypatch.setattr(library, "read_status", lambda *_: found)
    inspect.status(of(shared), None, as_json=False)
    assert shown.getvalue().count(ODD) == 6
    assert "nothing needs you, as far as was checked; see the warnings above" in shown.getvalue()


def test_sql(shared: Context, shown: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        mirrorlake.OpenLake, "rows", lambda *_, **__: Rows(QueryRows([{ODD: ODD}], [ODD]))
    )
    inspect.sql(of(shared), "SELECT 1", None, as_json=False)
    assert shown.getvalue().count(ODD) == 2


def test_translate(shared: Context, shown: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(topic=ODD, partition=0, offset=1, exact=True)
    monkeypatch.setattr(positions, "translate", lambda *_, **__: found)
    monkeypatch.setattr(positions, "inexact_reasons", lambda *_: {})
    monkeypatch.setattr(positions, "records_passed_over", lambda *_: ())
    inspect.translate(of(shared), "a->b", "t", 0, 1, False, None, as_json=False)
    assert ODD in shown.getvalue()


def test_resolve(shared: Context, shown: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "flow": ODD,
        "kind": ODD,
        "topic": ODD,
        "partition": None,
        "first_offset": None,
        "detail": ODD,
        "choices": {"stop": ODD},
        "decide_by": ODD,
        "closes_by_itself": False,
    }
    monkeypatch.setattr(library, "open_incidents", lambda *_: [row])
    resolve.resolve(of(shared), None, None, None, None, None, None, None, as_json=False)
    assert shown.getvalue().count(ODD) == 6, "and the line to type"


def test_resolve_names_the_mirror_where_there_are_two(
    shared: Context, shown: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"flow": "a->b", "topic": "t", "partition": 3, "first_offset": None, "detail": "d"}
    row = {**place, "kind": "target_refused", "choices": {"stop": "s"}, "target_topic": "a.t"}
    row |= {"closes_by_itself": False}
    for option, told in (("", False), (" --target-topic a.t", True)):
        one = {**row, "decide_by": f"mirrorlake resolve --topic t{option}"}
        monkeypatch.setattr(library, "open_incidents", lambda *_, one=one: [one])
        resolve.resolve(of(shared), None, None, None, None, None, None, None, as_json=False)
        assert ("a.t: d" in shown.getvalue()) is told


def test_resolve_names_what_stays_open_of_another_mirror(
    shared: Context, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = {"flow": "a->b", "topic": "t", "partition": 3, "first_offset": None, "detail": "d"}
    row = {**place, "kind": "target_refused", "choices": {"skip": "s"}}
    now, before = ({**row, "target_topic": name, "decide_by": name} for name in ("a.t", "t"))
    before["decide_by"] = "mirrorlake resolve --topic t --target-topic t"
    said: list[str] = []
    monkeypatch.setattr(type(shared), "say", lambda _shared, line: said.append(line))
    for left_open in ([], [before]):
        said.clear()
        decided = Resolved([now], left_open)
        monkeypatch.setattr(mirrorlake.OpenLake, "resolve", lambda *_, to=decided, **__: to)
        options = (None, "t", None, None, None, "skip", None)
        resolve.resolve(of(shared), *options, as_json=False)
        assert len(said) == 1 + len(left_open)
        resolve.resolve(of(shared), *options, as_json=True)
        assert json.loads(capsys.readouterr().out)["left_open"] == left_open
    line = f"mirrorlake -c {shared.config} resolve --topic t --target-topic t --choice skip"
    assert said[1] == (
        "1 incident stays open, about another target topic (t): decide the first by: " + line
    )


def test_resolve_says_what_decides_and_what_then(
    shared: Context, shown: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"flow": "a->b", "topic": "t", "partition": 3, "first_offset": None, "detail": "d"}
    row = {
        **place,
        "kind": "target_refused",
        "choices": {"retry": "r", "skip": "s"},
        "decide_by": "mirrorlake resolve --topic t",
        "closes_by_itself": False,
    }
    monkeypatch.setattr(library, "open_incidents", lambda *_: [row])
    said: list[str] = []
    monkeypatch.setattr(type(shared), "say", lambda _shared, line: said.append(line))
    resolve.resolve(of(shared), None, None, None, None, None, None, None, as_json=False)
    line = f"mirrorlake -c {shared.config} resolve --topic t"
    assert said == [f"decide the first of these by: {line} --choice retry (or skip)"]
    passing = {**row, "kind": "landing_failed", "closes_by_itself": True, "helps": "it passes"}
    for rows in ([passing, row], [passing]):
        said.clear()
        monkeypatch.setattr(library, "open_incidents", lambda *_, rows=rows: rows)
        resolve.resolve(of(shared), None, None, None, None, None, None, None, as_json=False)
        closes = "landing_failed: it passes"
        decided = f"decide the first of the others by: {line} --choice retry (or skip)"
        assert said == [closes, *([decided] if row in rows else [])]


def test_groups_and_moves(shared: Context, shown: io.StringIO) -> None:
    texts = (
        "group",
        "topic",
        "to_topic",
        "target_topic",
        "source_state",
        "target_state",
        "detail",
        "done",
    )
    numbers = (
        "partition",
        "source_position",
        "source_lag",
        "translated_position",
        "target_position",
        "target_lag",
    )
    row: dict[str, Any] = {**dict.fromkeys(texts, ODD), **dict.fromkeys(numbers, 1)}
    row.update(position=1, to_position=1, before=1, exact=True, read_again_at_most=0, reason=None)
    found = {
        "flow": ODD,
        "groups": [row],
        "errors": {ODD: ODD},
        "topics_waiting": {ODD: ODD},
        "untold": [],
        "not_mirrored": {},
    }
    groups._show_groups(shared, {**found, "source_unreachable": ODD, "target_unreachable": ODD})
    assert shown.getvalue().count(ODD) == 12
    staged = {"topic": ODD, "partition": 0, "first_offset": 1, "last_offset": 1, "record_count": 1}
    sampled = datetime(2026, 11, 30, 21, 11, 50, 207_000)
    never = {**staged, "sampled_at": sampled}
    moved = {
        "groups": [row],
        "drained": [{"flow": ODD, "complete": True, "records": 1}],
        "origin_unreachable": ODD,
    }
    moved.update(warnings=[ODD], left=[ODD], staged_only=[staged], never_staged=[never])
    moved["sampled_at"] = sampled
    groups._show_moves(shared, moved)
    assert shown.getvalue().count(ODD) == 12 + 5 + 4 + 2
    assert shown.getvalue().count("2026-11-30 21:11:50") == 2 and "207" not in shown.getvalue()


def test_the_rest(shared: Context, shown: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    local._show(
        shared,
        [ClusterStatus(ODD, ODD, ODD, running=True, pids=[1], log_directory=Path(ODD))],
        False,
    )
    local._say(shared, f"1/7 {ODD}")
    outcomes = ("carried", "not_needed", "not_supported")
    row = {"file": ODD, "line": None, "key": ODD, "to": ODD, "reason": ODD}
    report = {**{name: [row] for name in outcomes}, "notes": [ODD, ODD]}
    show_import(shared.err, Imported({}, report, {}, (ODD,)))
    assert shown.getvalue().count(ODD) == 4 + 1 + 9 + 2
    sizes = {"files_before": 1, "files": 1, "bytes_before": 1, "bytes": 1}
    noted = {"forget_id": "1", "records": 2, "flows": [ODD]}
    records = {"before": None, "removed": 0, "held": [{"flow": ODD}], "forgotten": [noted]}
    done = {
        "dry_run": False,
        "settings": {},
        "records": records,
        "history": {},
        "thinned": 0,
        "map": None,
        "tables": {ODD: sizes},
    }
    monkeypatch.setattr("mirrorlake.lake.maintain.maintain", lambda *_, **__: done)
    upkeep.maintain(of(shared), None, None, False, as_json=False)
    assert shown.getvalue().count(ODD) == 16 + 3


def test_notebooks(shown: io.StringIO, tmp_path: Path) -> None:
    host = Laptop([], "n")
    host._out.file = shown
    host.show(ODD, tmp_path)
    assert ODD in shown.getvalue()


def test_a_narrow_table_keeps_every_letter(shown: io.StringIO) -> None:
    console, table = plain_console(width=20), plain_table("name", title=ODD)
    console.file = shown
    table.add_row("abcdefghij" * 5)
    console.print(table)
    assert "…" not in shown.getvalue() and shown.getvalue().count("j") == 5


@given(
    st.lists(
        st.lists(st.none() | st.integers() | st.text(max_size=12), min_size=2, max_size=2),
        min_size=3,
        max_size=5,
    ),
    st.sampled_from([20, 80, 200]),
)
@settings(max_examples=25)
def test_a_long_table_is_the_one_that_rich_writes(rows: list[list[object]], width: int) -> None:
    console, headers = plain_console(width=width), ("first", "\u6771\u4eac")
    many = rows * 18  # more than Rich writes itself
    console.file = long = io.StringIO()
    print_table(console, *headers, rows=many)
    console.file = few = io.StringIO()
    console.print(plain_table(*headers, rows=many))
    assert long.getvalue() == few.getvalue()


def test_thousands_of_rows_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    console = plain_console(width=80)
    console.file = shown = io.StringIO()
    monkeypatch.setattr("mirrorlake.terminal.plain_table", None)  # cell by cell it takes seconds
    print_table(console, "topic", "position", rows=[("orders", at) for at in range(5_000)])
    assert shown.getvalue().count("orders") == 5_000


def test_nobody_makes_a_console_or_reads_markup_but_one_module() -> None:
    """Progress bars read markup whatever their console says, unless told not to."""
    for path, tree in modules_with(SRC, "Console", "markup", "TextColumn", "rich"):
        if path.name == "terminal.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name.rpartition(".")[2] not in ("Console", "from_markup", "escape_markup"), (
                    path
                )
                if name == "TextColumn":
                    assert {"markup": "False"}.items() <= {
                        k.arg: ast.unparse(k.value) for k in node.keywords
                    }.items()
            assert not (
                isinstance(node, ast.ImportFrom) and node.module in ("rich", "rich.markup")
            ), path


def test_progress(shown: io.StringIO) -> None:
    """What `run` draws, of a phase and of a flow with odd names."""
    console, progress = plain_console(width=200), Progress()
    console.file = shown
    with progress.phase(ODD):
        console.print(drawn(progress))
    progress.expect([ODD])
    console.print(drawn(progress))
    assert shown.getvalue().count(ODD) == 2


def test_what_an_encoding_lacks_is_written_as_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="latin-1"))
    row = plain_table("name", rows=[["grün €"]])
    with pytest.raises(UnicodeEncodeError):
        plain_console().print(row)
    write_any_text()
    plain_console().print(row)
    sys.stdout.flush()
    assert r"grün \u20ac" in written.getvalue().decode("latin-1")
