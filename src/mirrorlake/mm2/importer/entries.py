"""The content of a configuration file: one `Entry` per key, with its place in the file.

Values may be secrets: they appear in no repr and in no error.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from javaproperties import InvalidUEscapeError, KeyValue, parse

from mirrorlake.errors import InputError

#: The key for a connector's state, `running` or `paused`, which is not in its config: from a
#: Kubernetes resource, or from Connect's answer if that includes states.
STATE = "(state that is asked for)"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class SourceFile:
    """One file to import: the name as given, and its content."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Entry:
    """One key of one file; `line` counts from 1 and is None for an option of the command line.

    `written` is the file's own name for it if that is not `key`: the path of a field in a
    Kubernetes resource, from which several connector keys are made.
    """

    file: str
    line: int | None
    key: str
    value: str = field(repr=False)
    written: str = ""

    @property
    def place(self) -> tuple[str, int | None, str]:
        """File, line, and the name in the file."""
        return self.file, self.line, self.written or self.key

    @property
    def at(self) -> str:
        """The entry's place, as the beginning of a sentence about it."""
        line = f", line {self.line}" if self.line else ""
        return f"{self.file}{line}: {self.written or self.key}"

    def wrong(self, problem: str) -> InputError:
        """The error for a value that cannot be imported; `problem` must not contain it."""
        return InputError(f"{self.at} {problem}")


def read_properties(file: SourceFile) -> list[Entry]:
    """Read a file by java.util.Properties' rules, as Kafka does (Latin-1); stripped of blanks.

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

    Raises InputError that names the file, and the line if there is one.
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
    """Finds the lines of keys, which must be asked for in the order of the text."""

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
    """Whether it is Connect's answer with `expand`: connectors by name, `info` or `status`."""
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
        else:  # name, or a key that Connect's REST interface adds: tasks, type
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
    """What becomes of a setting: `fields` of the topology with their values, or why it is not
    needed, or why it is not supported. For a list carried in part the last says what is left out.
    `notes` are about carried values."""

    fields: Mapping[str, Value] = field(default_factory=dict)
    not_needed: str = ""
    not_supported: str = ""
    notes: tuple[str, ...] = ()
