"""Whether the native way can be taken is found out at start, and never by a crash."""

import ctypes as C
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.native import SWITCH, library, selfcheck, structures
from mirrorlake.native.library import Library

look = selfcheck._fault.__wrapped__
OTHER_SIZE = SimpleNamespace(**{**vars(structures), "CURSOR_BYTES": 8})


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that each test loads anew."""
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(selfcheck, "library", Library)


def test_it_can_be_taken_here() -> None:
    assert look() is None
    assert look() is None, "a second time too: nothing is left behind"


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert selfcheck.problem() == "MIRRORLAKE_NATIVE is off"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("file_name", lambda *_: "records-plan9-mips.so", "records-plan9-mips.so is not there"),
        ("file_name", lambda *_: "records.c", "records.c"),  # no library at all
        ("OLDEST", 0x7F_00_00_FF, "older than"),
        ("structures", OTHER_SIZE, "another version"),
        ("_BY_RECORD", ("no_such_loop", *library._BY_RECORD[1:]), "rd_kafka_no_such_loop"),
        ("_BY_RECORD", library._BY_RECORD[1:], "another version"),
        (
            "_FUNCTIONS",
            {**library._FUNCTIONS, "no_such_function": (C.c_int,)},
            "rd_kafka_no_such_function",
        ),
    ],
)
def test_what_does_not_fit_is_not_called(
    monkeypatch: pytest.MonkeyPatch, name: str, value: Any, said: str
) -> None:
    monkeypatch.setattr(library, name, value)
    assert said in str(look())


def other_layout() -> type[C.Structure]:
    """The message of a library that had another member between the partition and the payload."""
    fields = list(selfcheck.Message._fields_)
    return type(
        "Other", (C.Structure,), {"_fields_": [*fields[:3], ("new", C.c_int64), *fields[3:]]}
    )


def test_another_layout_of_messages_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck, "Message", other_layout())
    assert look() == "messages of this librdkafka have another layout than in records.c"


@pytest.mark.parametrize(
    ("loop", "instead", "said"),
    [
        ("send", lambda *_: 1, "does not take a record"),
        ("survey", lambda *_: 0, "counts records wrongly"),
        ("fill", lambda *_: 0, "reads partition, offset"),
        ("queue_poll", lambda *_: None, "no report"),
        ("event_message_array", lambda *_: 3, "not every record"),
    ],
)
def test_a_loop_that_does_something_else_is_seen(
    monkeypatch: pytest.MonkeyPatch, loop: str, instead: Callable[..., Any], said: str
) -> None:
    def broken() -> Library:
        made = Library()
        setattr(made, loop, instead)
        return made

    monkeypatch.setattr(selfcheck, "library", broken)
    assert said in str(look())


@pytest.mark.parametrize("row", range(len(selfcheck._RECORDS)))
def test_each_record_is_compared(monkeypatch: pytest.MonkeyPatch, row: int) -> None:
    expected = selfcheck._expected
    timestamp, key, value, headers = selfcheck._RECORDS[row]
    others = list(selfcheck._RECORDS)
    others[row] = (timestamp, key, value, [*headers, ("n", None)])

    def another() -> tuple[dict[str, Any], dict[str, int]]:
        with monkeypatch.context() as patched:
            patched.setattr(selfcheck, "_RECORDS", tuple(others))
            return expected()

    monkeypatch.setattr(selfcheck, "_expected", another)
    assert look() is not None
