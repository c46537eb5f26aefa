"""What differs is said by lengths and null, never by bytes."""

import pytest

from mirrorlake.verify.job import describe

ROW = {"timestamp": 5, "key": b"secret", "value": None, "headers": [{"key": "a", "value": None}]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"timestamp": 6}, "timestamp 5 became 6"),
        ({"key": b""}, "key: 6 bytes became empty"),
        ({"value": b"hidden"}, "value: null became 6 bytes"),
        ({"headers": [{"key": "a", "value": b""}]}, "header 0: null became empty"),
        ({"headers": [{"key": "b", "value": None}]}, "header 0: another name"),
        ({"headers": None}, "1 headers became 0"),
        ({"timestamp": 6, "key": None}, "timestamp 5 became 6; key: 6 bytes became null"),
    ],
)
def test_each_field(changed: dict[str, object], said: str) -> None:
    assert describe(ROW, {**ROW, **changed}) == said
    assert "secret" not in said and "hidden" not in said
