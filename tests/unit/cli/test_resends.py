"""How `replay` and `restore` read their options and show what was sent."""

import json
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from mirrorlake.cli.context import Context
from mirrorlake.cli.resends import _below, replay, tell
from mirrorlake.errors import InputError
from mirrorlake.library.answers import Rows
from mirrorlake.library.resent import Resent, shown

TOPICS = Rows([{"topic": "orders", "target_topic": "orders.replay", "records": 1_200}])


def test_offsets() -> None:
    assert _below("a.b-c:3:42") == (("a.b-c", 3), 42)
    for text in ("orders", "orders:0", "orders:x:1", ":0:1", "orders:0:-1", "orders:0:1:2"):
        with pytest.raises(InputError, match="write topic, partition and offset"):
            _below(text)


def test_bytes_are_shown_as_text() -> None:
    assert shown(None) is None and shown(b"") == ""
    assert shown("schön\t\x1b[31m".encode()) == "schön··[31m" and shown(b"\xff\x00") == "�·"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"where": "true", "to": "x", "flow": "a->b"}, "--flow is for --parked; .* --from names"),
        ({"where": "true"}, "where they go by --to"),
        ({"where": " ", "to": "x"}, "--where is empty; write a condition"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], said: str) -> None:
    unset = dict.fromkeys(("where", "to", "flow", "source", "cluster", "max_records", "rate"))
    context: Any = SimpleNamespace(obj=Context(Path("mirrorlake.yml")))
    with pytest.raises(InputError, match=said):
        replay(context, "orders", **{**unset, "parked": False, **options}, as_json=False)


def code_of(found: Resent, as_json: bool = False) -> int:
    """The exit code of what is shown."""
    try:
        tell(Context(Path("mirrorlake.yml")), found, as_json)
    except typer.Exit as end:
        return end.exit_code
    return 0


def test_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    row: dict[str, Any] = {
        "partition": 0,
        "offset": 7,
        "timestamp": datetime(2026, 11, 21, tzinfo=timezone.utc),
    }
    examples = Rows([{**row, "key": None, "value": "[red]{"}])
    found = Resent(
        TOPICS,
        None,
        dry_run=True,
        continued=False,
        complete=False,
        examples=examples,
        warnings=["topic orders.replay would be made"],
    )
    assert code_of(found) == 0
    said = capsys.readouterr()
    assert (
        all(text in said.out for text in ("1,200", "[red]{", "2026-11-21 00:00:00"))
        and "would be made" in said.err
    )
    assert code_of(found, True) == 0
    document = json.loads(capsys.readouterr().out)
    assert (
        document["topics"] == TOPICS
        and document["examples"][0]["offset"] == 7
        and document["dry_run"]
    )


def test_what_is_left_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    left = Resent(
        TOPICS, "replay:1:east->west", False, True, False, warnings=["the target refused one"]
    )
    assert code_of(left) == 1 and "the target refused one" in capsys.readouterr().err
    done = Resent(TOPICS, "replay:1:east->west", False, True, True)
    assert code_of(done) == 0 and "replay:1:east->west is its name" in capsys.readouterr().err
    assert done.records == 1_200 and "1,200 records were sent" in done._repr_html_()
