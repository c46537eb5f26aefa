"""Values take the place of parameters in a statement for Spark, and cannot be more than values."""

import re
from datetime import date, datetime, timedelta, timezone
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from mirrorlake.lake.definitions import sql_text
from mirrorlake.lake.spark_rows import literal, with_values

TEXTS = [
    (kind, item.name.removesuffix(".sql"))
    for kind in ("queries", "notebooks")
    for item in sorted((files("mirrorlake") / "sql" / kind).iterdir(), key=lambda item: item.name)
]
#: What a text may hold that ends a text of SQL, begins a comment, or is replaced.
ODD = st.text(st.sampled_from("abé'\"\\`$:{}-/*\n\t \0\U0001f600"))


def named_in(text: str) -> set[str]:
    """The parameters of a statement, as a parser of SQL sees them."""
    tree = parse_one(re.sub(r"\{(\w+)\}", r"\1", text), dialect="databricks")
    return {str(each.this) for each in tree.find_all(exp.Placeholder)}


@pytest.mark.parametrize(("kind", "name"), TEXTS)
def test_every_parameter_of_the_package_is_filled(kind: str, name: str) -> None:
    text = sql_text(kind, name)
    named = named_in(text)
    filled, left = with_values(text, {**dict.fromkeys(named, 1), "nowhere": 2})
    assert named_in(filled) == set() and left == {"nowhere": 2}


@given(ODD | st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_comes_back_and_ends_nothing(value: str) -> None:
    said = literal(value)
    assert said is not None and re.fullmatch(r"[\w ./:@,;+=<>()*'-]*", said, re.ASCII)
    tree = parse_one(f"SELECT {said} AS value, 1 AS one", dialect="databricks")
    first, second = tree.expressions
    assert second.alias == "one", "nothing behind it is a part of it"
    found = first.this
    if isinstance(found, exp.Cast):
        assert bytes.fromhex(found.this.this).decode() == value
    else:
        assert found.is_string and found.this == value


@given(st.dictionaries(st.sampled_from(["a", "b", "long_name"]), ODD, min_size=1))
def test_no_value_is_taken_for_a_parameter(values: dict[str, str]) -> None:
    text = " ".join(f"[:{name}]" for name in values)
    assert with_values(text, values) == (
        " ".join(f"[{literal(each)}]" for each in values.values()),
        {},
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ':x' AS a",
        'SELECT ":x" AS a',
        "SELECT 'it\\'s :x'",
        "SELECT 'it''s :x'",
        "SELECT r'\\' AS a, ':x'",
        "SELECT `:x` FROM t",
        "SELECT 1 -- :x",
        "SELECT 1 /* :x\n :x */ AS a",
        "SELECT a::x, '{}':y",
        "SELECT document:x, :xy, :y",
    ],
)
def test_what_only_looks_like_a_parameter_stays(text: str) -> None:
    assert with_values(text, {"x": 1}) == (text, {"x": 1})


def test_parameters_behind_what_looks_like_one() -> None:
    text = "SELECT ':x', `a`, -- it's\n :x, 'b' /* ' */ = :x AND n-:n, [:x], :x"
    filled = "SELECT ':x', `a`, -- it's\n 'v', 'b' /* ' */ = 'v' AND n-(-5), ['v'], 'v'"
    assert with_values(text, {"x": "v", "n": -5}) == (filled, {})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (7, "7"),
        (-7, "(-7)"),
        (-(2**63), "(-9223372036854775808)"),
        (1e-07, "CAST('1e-07' AS DOUBLE)"),
        (float("nan"), "CAST('nan' AS DOUBLE)"),
        (b"\x00'", "X'0027'"),
        (date(2026, 3, 1), "DATE '2026-03-01'"),
        (
            datetime(2026, 3, 1, 1, 2, 3, 4, timezone(timedelta(hours=1))),
            "TIMESTAMP '2026-03-01 00:02:03.000004+00:00'",
        ),
        (["a", 1], "array('a', 1)"),
        ({"a": 1}, None),
        ([object()], None),
    ],
)
def test_values_of_other_kinds(value: object, said: str | None) -> None:
    """What is not known here is left for Spark."""
    assert literal(value) == said
    filled, left = with_values("SELECT :x", {"x": value})
    assert (filled, left) == (
        ("SELECT :x", {"x": value}) if said is None else (f"SELECT {said}", {})
    )


def test_a_time_without_a_zone_is_one_of_this_machine() -> None:
    at = datetime(2026, 3, 1, 12)
    assert literal(at) == literal(at.astimezone())
