"""What a configuration file says, one `Entry` a key, with the place where it stands.

Values may be secrets: they show in no repr and in no error.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from javaproperties import InvalidUEscapeError, KeyValue, parse

from mirrorlake.errors import InputError

#: The key of what is known of a connector beside its config: whether it is `running` or `paused`.
#: A resource of Kubernetes says it, and Connect's answer, where it was asked for states too.
STATE = "(state that is asked for)"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class SourceFile:
    """One file to import: the name a person gave, and what it holds."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Entry:
    """One key of one file; `line` counts from 1 and is None for an option of the command line.

    `written` is how the file calls it where that is not `key`: the path of a field in a resource of
    Kubernetes, of which several keys of connectors are made.
    """

    file: str
    line: int | None
    key: str
    value: str = field(repr=False)
    written: str = ""

    @property
    def place(self) -> tuple[str, int | None, str]:
        """File, line, and the name that the file has for it."""
        return self.file, self.line, self.written or self.key

    @property
    def at(self) -> str:
        """Where the entry stands, as the beginning of a sentence about it."""
        line = f", line {self.line}" if self.line else ""
        return f"{self.file}{line}: {self.written or self.key}"

    def wrong(self, problem: str) -> InputError:
        """Make the error for a value that cannot be imported; `problem` must not hold the value."""
        return InputError(f"{self.at} {problem}")


def read_properties(file: SourceFile) -> list[Entry]:
    """Read a file by the rules of java.util.Properties, as Kafka does (Latin-1); blanks around
    values are cut off.

    A key may come several times. Raises InputError that names the file and the line.
    """
    entries, line = [], 1
    try:
        for element in parse(file.data.removeprefix(_BYTE_ORDER_MARK)):
            if isinstance(element, KeyValue):
                entries.append(Entry(file.name, line, element.key.strip(), element.value.strip()))
            line += len(re.findall(r"\r\n|\r|\n", element.source))
    except InvalidUEscapeError:
        raise InputError(
            f"{file.name}, line {line}: \\u is not followed by four hexadecimal digits"
        ) from None
    return entries


def read_json(file: SourceFile) -> list[list[Entry]]:
    """Read connectors, each as its entries: `{"name": …, "config": {…}}`, a bare config, a list of
    either, or what Connect's `GET /connectors?expand=info` answers.

    Raises InputError that names the file, and the line where there is one.
    """
    try:
        text = file.data.removeprefix(_BYTE_ORDER_MARK).decode("utf-8")
        content = json.loads(text, object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is not UTF-8 text, as JSON must be") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{file.name} is not valid JSON in line {error.lineno}: {error.msg}"
        ) from None
    except (_Twice, RecursionError) as error:
        raise InputError(f"{file.name} is not usable JSON: {error}") from None
    lines = _Lines(text)
    if _is_listing(content):
        return [list(_listed(file.name, name, parts, lines)) for name, parts in content.items()]
    return [
        list(_connector(file.name, connector, lines))
        for connector in (content if isinstance(content, list) else [content])
    ]


class _Twice(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(f"key {next(key for key in keys if keys.count(key) > 1)} is given twice")
    return entries


class _Lines:
    """Finds the line of each key, asked for in the order of the text."""

    def __init__(self, text: str) -> None:
        self._text, self._position = text, 0

    def line_of(self, key: str) -> int | None:
        match = re.compile(rf"(?<!\\){re.escape(json.dumps(key, ensure_ascii=False))}\s*:").search(
            self._text, self._position
        )
        if match is None:
            return None
        self._position = match.end()
        return self._text.count("\n", 0, match.start()) + 1


def _is_listing(content: object) -> bool:
    """Whether it is Connect's answer with `expand`: connectors by name, with `info` or `status`."""
    return (
        isinstance(content, dict)
        and bool(content)
        and all(
            isinstance(parts, dict) and bool(parts) and parts.keys() <= {"info", "status"}
            for parts in content.values()
        )
    )


def _listed(file: str, name: str, parts: dict[str, Any], lines: "_Lines") -> Iterator[Entry]:
    """One connector of such an answer. Raises InputError for an answer without configs."""
    if "info" not in parts:
        raise InputError(
            f"{file} has the states of connectors and not their configs; save what "
            "GET /connectors?expand=info answers"
        )
    lines.line_of(name)
    for part, content in parts.items():
        line = lines.line_of(part)
        if part == "info":
            yield from _connector(file, content, lines)
        else:
            state = content.get("connector", {}).get("state") if isinstance(content, dict) else ""
            stands = state in ("PAUSED", "STOPPED")
            yield Entry(file, line, STATE, "paused" if stands else "running", written=f"({part})")


def _connector(file: str, connector: object, lines: _Lines) -> Iterator[Entry]:
    if not isinstance(connector, dict):
        raise InputError(f"{file} holds no connector: write an object with name and config")
    if "config" not in connector:
        yield from _config(file, connector, lines)
        return
    if not isinstance(connector["config"], dict):
        raise InputError(f"{file}: config must be an object")
    for key, value in connector.items():
        line = lines.line_of(key)
        if key == "config":
            yield from _config(file, value, lines)
        else:  # name, and what Connect's REST interface adds: tasks, type
            yield Entry(file, line, "name" if key == "name" else f"({key})", "")


def _config(file: str, config: dict[str, Any], lines: _Lines) -> Iterator[Entry]:
    for key, value in config.items():
        line = lines.line_of(key)
        if value is None or isinstance(value, dict | list):
            raise InputError(
                f"{file}, line {line}: {key} must be a string, a number, true or false"
            )
        text = value if isinstance(value, str) else json.dumps(value)
        yield Entry(file, line, key.strip(), text.strip())


Value = str | int | bool | list[str]


@dataclass(frozen=True)
class SettingOutcome:
    """One of: `fields` of the topology with their values, why it is not needed, why it is not
    supported. A list may be carried in part: then the last one says what of it is not. `notes` are
    about what is carried."""

    fields: Mapping[str, Value] = field(default_factory=dict)
    not_needed: str = ""
    not_supported: str = ""
    notes: tuple[str, ...] = ()
