"""The exceptions of mirrorlake: their attributes, their kinds of incident, and how they come
through a pickle."""

import pickle
import re

import pytest

from mirrorlake import errors
from mirrorlake.errors import (
    ClusterUnreachable,
    MapError,
    MirrorlakeError,
    TargetRecreated,
    TargetRefused,
)
from mirrorlake.lake.incidents import Incident, _row
from mirrorlake.lake.renewed_options import NotLent
from mirrorlake.library.flows import UnknownFlow

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, MirrorlakeError)
]
INCIDENT_KINDS = {
    "TargetRefused": "target_refused",
    "TopicRefused": "topic_refused",
    "TargetRecreated": "target_recreated",
    "TargetLost": "target_lost",
    "PositionLost": "position_lost",
    "MapBehind": "map_behind",
    "MapUnknown": "map_unknown",
    "StageTrimmed": "stage_trimmed",
    "Fenced": "fenced",
    "MapError": "map_contradiction",
    "CountDiffers": "map_contradiction",
    "ContentDiffers": "content_differs",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_class_says_what_kind_of_incident_it_is(kind: type[MirrorlakeError]) -> None:
    assert kind.incident_kind == INCIDENT_KINDS.get(kind.__name__, "flow_stopped")


@pytest.mark.parametrize(
    "error",
    [
        MirrorlakeError("plain"),
        UnknownFlow("with two bases"),
        NotLent("with one that keeps its text apart"),
        ClusterUnreachable("with what it needs", alias="east"),
        MapError("with a place", topic="t", partition=1, first_offset=2, last_offset=3),
        TargetRecreated("with more", topic="t", partition=1, target_generation=2, reason="R"),
    ],
)
def test_a_pickle_keeps_class_message_and_attributes(error: MirrorlakeError) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is type(error)
        assert (again.args, vars(again)) == (error.args, vars(error))
        assert str(again) == str(error)


def test_the_tree_of_the_page_is_the_tree_of_the_classes() -> None:
    """Each class under its base, and what each is for in one column."""
    lines = re.findall(r"^    ([ │├└─]*)(\w+)( +)(\S.*)$", errors.__doc__ or "", re.MULTILINE)
    path: list[str] = []
    for indent, name, _, _ in lines:
        path[len(indent) // 4 :] = [name]
        kind = getattr(errors, name)
        assert [base.__name__ for base in reversed(kind.__mro__[:-3])] == path
    assert {name for _, name, _, _ in lines} == {kind.__name__ for kind in KINDS}
    assert {len(indent + name + gap) for indent, name, gap, _ in lines} == {34}


def test_a_refusal_names_its_partition_unless_it_is_about_a_topic() -> None:
    assert TargetRefused("no", topic="t", partition=0).topic_partition == ("t", 0)
    with pytest.raises(ValueError, match="no such topic"):
        _ = TargetRefused("no such topic", topic="t").topic_partition


def test_an_incident_has_the_place_of_its_error() -> None:
    place = {
        "topic": "t",
        "partition": 1,
        "first_offset": 2,
        "last_offset": 3,
        "target_generation": 4,
    }
    told = _row(Incident("a->b", "target_recreated", TargetRecreated("gone", **place)))  # type: ignore[arg-type]
    assert {name: told[name] for name in place} == place
    bare = _row(
        Incident("a->b", "cluster_unreachable", ClusterUnreachable("silent\nfor long", alias="a"))
    )
    assert {bare[name] for name in place} == {None} and bare["detail"] == "silent"
