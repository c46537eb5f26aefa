"""Answers are the documents of the command line, and tables in a notebook that show every text as
it is."""

import json
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from mirrorlake import Divergence, Groups, Moves, Plan, Position, Rows, Status, Upkeep
from mirrorlake.library.html import SHOWN_ROWS

ODD = "<b>&"
SAFE = "&lt;b&gt;&amp;"
MOVED = {
    "flow": "a->b",
    "command": "failover",
    "dry_run": True,
    "complete": False,
    "origin_unreachable": None,
    "drained": [],
    "groups": [{"group": ODD}],
    "warnings": [ODD],
    "left": [ODD],
}


def test_a_position() -> None:
    found = Position("east.orders", 0, 57, True)
    assert found.to_dict() == {
        "topic": "east.orders",
        "partition": 0,
        "offset": 57,
        "exact": True,
        "reason": None,
    }
    assert found == Position("east.orders", 0, 57, True) and hash(found)
    assert "<td>east.orders</td><td>0</td><td>57</td><td>True</td>" in found._repr_html_()


def test_rows_are_a_list_and_a_table() -> None:
    rows = Rows(
        [
            {"a": ODD, "b": None},
            {"a": {"stop": ODD, "go": 1.5}, "c": datetime(2026, 1, 2, tzinfo=timezone.utc)},
        ]
    )
    assert json.loads(json.dumps(rows[:1])) == [{"a": ODD, "b": None}]
    html = rows._repr_html_()
    assert (
        "<th>a</th><th>b</th><th>c</th>" in html and f"<td>{SAFE}</td><td>-</td><td>-</td>" in html
    )
    assert (
        f"stop: {SAFE}<br>go: 1.50" in html
        and "2026-01-02 00:00:00.000+00:00" in html
        and ODD not in html
    )
    assert Rows()._repr_html_() == "<p>no rows</p>"
    many = Rows({"n": number} for number in range(SHOWN_ROWS + 1))._repr_html_()
    assert (
        many.count("<tr>") == SHOWN_ROWS + 1
        and f"the first {SHOWN_ROWS} of {SHOWN_ROWS + 1} rows" in many
    )


def test_a_status() -> None:
    document = {
        "healthy": False,
        "flows": [{"flow": "a->b", "enabled": True, "more": 1}],
        "topics": [],
        "incidents": [{"detail": ODD}],
        "alerts": [{"detail": ODD}],
        "unchecked": [ODD],
        "proofs": [],
        "attention": [ODD],
        "warnings": [ODD],
        "workers": [],
    }
    found = Status.from_document(document)
    assert found.to_dict() == document and list(found.to_dict()) == list(document)
    assert isinstance(found.flows, Rows) and not isinstance(found.unchecked, Rows)
    html = found._repr_html_()
    assert (
        "not healthy: 1 alerts" in html
        and html.count(SAFE) == 5
        and ODD not in html
        and "more" not in html
    )


def test_groups() -> None:
    told = dict.fromkeys(("errors", "not_mirrored", "topics_waiting"), {})
    whole = {
        "flow": "a->b",
        "source_unreachable": None,
        "target_unreachable": None,
        "untold": [],
        **told,
    }
    found = Groups.from_document({**whole, "groups": [{"group": ODD}]})
    assert found.complete and found.to_dict() == {**whole, "groups": [{"group": ODD}]}
    assert SAFE in found._repr_html_() and ODD not in found._repr_html_()
    for name, value in (("untold", [ODD]), ("errors", {ODD: ODD}), ("source_unreachable", ODD)):
        found = Groups.from_document({**whole, name: value, "groups": []})
        assert not found.complete and SAFE in found._repr_html_()
    assert Groups.from_document(
        {**whole, "not_mirrored": {"g": "it is no consumer group"}, "groups": []}
    ).complete


def test_moves() -> None:
    found = Moves.from_document(MOVED)
    assert found.to_dict() == MOVED, "what was not asked for is no key"
    assert "nothing was changed" in found._repr_html_() and found._repr_html_().count(SAFE) == 3
    gone = {**MOVED, "origin_unreachable": ODD, "staged_only": [], "never_staged": [{"topic": ODD}]}
    gone["sampled_at"] = None
    assert (
        Moves.from_document(gone).to_dict() == gone
        and "never staged" in Moves.from_document(gone)._repr_html_()
    )


def test_a_plan_and_upkeep() -> None:
    flow = {"flow": ODD, "topics": [{"topic": ODD, "configs": {"a": "b"}}]}
    plan = {
        "clusters": {"a": "id"},
        "problems": [{"sentence": ODD}],
        "flows": [flow],
        "totals": {"topics": 1},
        "needs": {"cores": 0.5},
    }
    assert (
        Plan.from_document(plan).to_dict() == plan
        and Plan.from_document(plan)._repr_html_().count(SAFE) == 3
    )
    size = {"files_before": 2, "files": 1, "bytes_before": 2, "bytes": 1}
    done = {
        "dry_run": True,
        "settings": {},
        "records": {"removed": 5},
        "history": {},
        "thinned": 0,
        "map": None,
    }
    found = Upkeep.from_document({**done, "tables": {"records": size}})
    assert found.to_dict() == {**done, "tables": {"records": size}}
    assert (
        "5 records would be deleted" in found._repr_html_()
        and "<td>records</td>" in found._repr_html_()
    )


@pytest.mark.parametrize("lost", [None, "staged_only", "never_staged", "sampled_at"])
def test_records_that_a_target_lacks_are_not_below_a_good_heading(lost: str | None) -> None:
    """Nor what is not known, as no sample says what the source has."""
    now = datetime.now(timezone.utc)
    found = Divergence("a->b", staged_only=Rows(), never_staged=Rows(), sampled_at=now)
    if lost == "sampled_at":
        found = replace(found, sampled_at=None)
    elif lost is not None:
        found = replace(found, **{lost: Rows([{"topic": "orders", "first_offset": 7}])})
    assert found.headline[1] == (lost is None)
    assert ("color" in found._repr_html_()) == (lost is not None)
