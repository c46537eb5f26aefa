"""Java's patterns in a syntax that Python shares, and patterns that no name can match."""

import re

import pytest

from mirrorlake.naming.patterns import check_pattern, never_in_names, shared_form
from mirrorlake.naming.selection import matches_any


@pytest.mark.parametrize(
    ("java", "shared"),
    [
        ("(?i)orders.*", "(?i:orders.*)"),
        ("(?i)a|b", "(?i:a|b)"),
        ("^(?i)a$", "^(?i:a$)"),
        (r"\p{Lower}+", "[a-z]+"),
        (r"[\p{Alnum}_-]+", "[a-zA-Z0-9_-]+"),
        (r"\P{Digit}*", "[^0-9]*"),
        (r"\Qa.b\E.*", r"a\.b.*"),
        (r"x\Q.*", r"x\.\*"),
        ("[a-z&&[^x]]+", "(?:(?=[^x])[a-z])+"),
        ("[a-z&&a-f]", "(?:(?=[a-f])[a-z])"),
        ("[a-c[x-z]]", "[a-cx-z]"),
        ("(?<name>a|b)c", "(?:a|b)c"),
        (r"(?i)\p{Upper}\Q.\E", r"(?i:[A-Z]\.)"),
    ],
)
def test_what_java_alone_reads_is_said_in_what_both_read(java: str, shared: str) -> None:
    assert check_pattern(java) and shared_form(java) == shared
    assert check_pattern(shared) is None


@pytest.mark.parametrize(
    "java",
    [
        r"(a)\1", "(?x)a b", "a(?i)b", r"\p{L}", r"[\P{Lower}a]", "[a-[z]]", "[^a&&[b]]",
        "[a&&b&&c]", r"\\Qa(", "(", "(?<n>a)\\k<n>",
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_not_made_up(java: str) -> None:
    assert shared_form(java) is None


def test_a_pattern_that_both_read_has_no_other_form() -> None:
    assert shared_form(r"orders\.(?:a|b)[^x]*") is None


@pytest.mark.parametrize(
    ("pattern", "name", "java"),
    [
        (r"\w+", "é", False),
        (r"\d", "\u0663", False),
        ("(?i:k)", "\u212a", False),
        (r"a\b.", "aé", True),
    ],
)
def test_letters_and_digits_are_javas(pattern: str, name: str, java: bool) -> None:
    assert bool(re.fullmatch(pattern, name)) is not java
    assert matches_any((pattern,), name) is java


@pytest.mark.parametrize(
    ("pattern", "char"),
    [
        ("orders.*   # all orders", " "),
        ('"orders.*', '"'),
        (r"a\$b", "$"),
        ("a b|c d", " "),
        ("a b|c", None),
        ("a ?b", None),
        ("a #{0,1}b", " "),
        ("a(b c)?", None),
        ("[ab c]x{1,2}", None),
        (r"\x41\.b-c_d", None),
        ("(?:a|b) c", " "),
    ],
)
def test_a_character_that_no_topic_can_have(pattern: str, char: str | None) -> None:
    assert check_pattern(pattern) is None
    assert never_in_names(pattern) == char
