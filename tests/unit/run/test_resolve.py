"""Decisions about incidents: which are meant, and what each kind offers."""

from types import SimpleNamespace
from typing import cast

import pytest

from mirrorlake.control.acl_reports import LEFT
from mirrorlake.lake.reader import Reader
from mirrorlake.run.attention import no_decision
from mirrorlake.run.choices import CHOICES, choices_of
from mirrorlake.run.resolve import Wanted, open_incidents

REMADE = {"flow": "east->west", "kind": "topic_recreated", "topic": "orders", "partition": None}
REFUSED = {"flow": "east->west", "kind": "target_refused", "topic": "orders", "partition": 2}


@pytest.mark.parametrize(
    ("wanted", "incident", "meant"),
    [
        (Wanted(), REMADE, True),
        (Wanted(flow="east->west"), REFUSED, True),
        (Wanted(flow="east->north"), REFUSED, False),
        # What happened to the source concerns every flow that reads from it.
        (Wanted(flow="east->north"), REMADE, True),
        (Wanted(flow="north->west"), REMADE, False),
        (Wanted(topic="orders", partition=2), REFUSED, True),
        (Wanted(topic="orders", partition=1), REFUSED, False),
        (Wanted(kind="target_refused"), REMADE, False),
        (Wanted(target_topic="east.orders"), {**REFUSED, "target_topic": "east.orders"}, True),
        (Wanted(target_topic="orders"), {**REFUSED, "target_topic": "east.orders"}, False),
    ],
)
def test_which_incidents_are_meant(
    wanted: Wanted, incident: dict[str, object], meant: bool
) -> None:
    assert wanted.meets(incident) is meant


def test_every_kind_that_stops_something_can_be_stopped_for_good_or_gone_on_from() -> None:
    for kind, choices in CHOICES.items():
        assert kind == LEFT or "stop" in choices and len(choices) > 1, kind
    assert set(choices_of(LEFT)) == {"keep", "revoke"}, "nothing waits for these"
    assert set(choices_of("flow_stopped")) == {"acknowledge"}


def test_what_closes_by_itself_says_that_a_decision_does_not_help() -> None:
    assert "reported again" in choices_of("landing_failed")["acknowledge"]
    assert "reported again" not in choices_of("other_writer")["acknowledge"]
    row = {"flow": "a->b", "kind": "landing_failed", "topic": None, "partition": None, "at": 1}
    reader = cast(Reader, SimpleNamespace(table_rows=lambda _name: [row]))
    (incident,) = open_incidents(reader, Wanted())
    assert incident["closes_by_itself"] and incident["helps"] == no_decision("landing_failed")


def test_an_incident_has_the_command_that_decides_it() -> None:
    row = {"flow": "a->b", "kind": "target_refused", "topic": "t", "partition": 3, "at": 1}
    reader = cast(Reader, SimpleNamespace(table_rows=lambda _name: [row]))
    (incident,) = open_incidents(reader, Wanted())
    wanted = "mirrorlake resolve --flow 'a->b' --topic t --partition 3 --kind target_refused"
    assert incident["decide_by"] == wanted and "skip" in incident["choices"]
    assert incident["helps"] == f"decide by: {wanted.removesuffix(' --kind target_refused')}"


def test_where_a_topic_had_two_mirrors_the_command_names_one() -> None:
    row = {"flow": "a->b", "kind": "target_refused", "topic": "t", "partition": 3, "at": 1}
    rows = [{**row, "target_topic": name} for name in ("a.t", "t", None)]
    rows.append({**row, "topic": "u", "target_topic": "a.u"})
    reader = cast(Reader, SimpleNamespace(table_rows=lambda _name: rows))
    named = [one["decide_by"].rpartition(" --")[2] for one in open_incidents(reader, Wanted())]
    assert named == ["target-topic a.t", "target-topic t", *["kind target_refused"] * 2]
