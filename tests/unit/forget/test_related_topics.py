"""Where else the stage has the records that are to be forgotten."""

import pytest

from mirrorlake.forget.related_topics import is_about_content, topics_with_same_records

STAGED = {
    ("east", "orders"),
    ("east", "other"),
    ("west", "east.orders"),
    ("north", "west.east.orders"),
    ("ost", "orders"),
    ("ost", "other"),
    ("west", "again"),
}
MIRRORS = [
    ("east->west", "orders", "east.orders"),
    ("west->north", "east.orders", "west.east.orders"),
    ("east->lab", "orders", "east.orders"),
    ("replay:20261124-1:east->west", "orders", "again"),
    ("east->west", "other", "east.other"),
]
ALIASES = {"east": "1", "ost": "1", "west": "2", "north": "3", "lab": "4"}
ALL = [("north", "west.east.orders"), ("ost", "orders"), ("west", "again"), ("west", "east.orders")]


def test_mirrors_of_mirrors_other_aliases_and_what_was_replayed() -> None:
    assert topics_with_same_records({("east", "orders")}, MIRRORS, ALIASES, STAGED) == ALL


def test_where_they_come_from() -> None:
    found = topics_with_same_records({("north", "west.east.orders")}, MIRRORS, ALIASES, STAGED)
    assert set(found) == {*ALL[1:], ("east", "orders")}
    assert topics_with_same_records({("west", "unrelated")}, MIRRORS, ALIASES, STAGED) == []


@pytest.mark.parametrize(
    ("where", "content"),
    [
        ("CAST(key AS STRING) = 'k' OR get_json_object(CAST(value AS STRING), '$.id') = '4'", True),
        ("exists(headers, item -> item.key = 'id')", True),
        ("KEY IS NULL AND headers[0].value IS NOT NULL", True),
        ("records.key = X'00'", False),
        ("partition = 0", False),
        ("key = X'00' AND offset BETWEEN 3 AND 5", False),
    ],
)
def test_whether_a_predicate_can_be_asked_elsewhere(where: str, content: bool) -> None:
    assert is_about_content(where) == content
