"""Reads YAML for `mirrorlake.config.topology`, and turns errors in it into one sentence.

Sentences quote only keys, types and allowed values: a value of the file may be a secret.
"""

import os
from collections.abc import Hashable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mirrorlake.config.flow_reasons import normal, reason
from mirrorlake.errors import TopologyError, first_line

_TYPES = {
    "string": "a text",
    "int": "a whole number",
    "bool": "true or false",
    "dict": "a mapping",
    "model": "a mapping",
    "tuple": "a list of texts",
}
#: Examples of blocks, for an error about a single word in their place.
_SHAPES = {"lake": "{path: ./lake}", "clusters": '{bootstrap_servers: "HOST:9092"}'}
#: Common YAML errors and what to do about them.
_HINTS = {
    "expected ',' or '}'": "a text with { or , in it stands between quotes",
    "expected alphabetic or numeric": "a text that begins with * or & stands between quotes",
    "character '\\t'": "indent by blanks, and not by tabs",
}


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice, where PyYAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build one mapping; raises ConstructorError with the line of a repeated key."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key.value} is given twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or all of them."""
    names = sorted(known)
    close = get_close_matches(name, names, n=3)
    if not close:
        return f"; known are {', '.join(names)}"
    swapped = [candidate for candidate in close if sorted(candidate) == sorted(name)]
    return f"; did you mean {(swapped or close)[0]}?"


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; raises TopologyError (missing, unreadable, invalid with line, empty)."""
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        raise _no_file(path) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TopologyError(f"{path} cannot be read: {reason}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TopologyError(f"{path} is not valid YAML{_where(error)}") from None
    if data is None:
        raise TopologyError(f"{path} is empty; it needs the keys clusters, lake and flows")
    if not isinstance(data, dict):
        raise TopologyError(f"{path} must hold a mapping with the keys clusters, lake and flows")
    return data


def _no_file(path: Path) -> TopologyError:
    """The error for a missing file. It names the current folder of a relative path, and the file
    with the other ending (.yml, .yaml) if that exists."""
    where = f"{path}" if path.is_absolute() else f"{path} in {os.getcwd()}"
    other = path.with_suffix(".yml" if path.suffix == ".yaml" else ".yaml")
    hint = "create one with `mirrorlake init` or name another with -c"
    if other.exists():
        hint = f"{other.name} is there: name it with -c {other}"
    return TopologyError(f"there is no topology file {where}; {hint}")


def explain(
    path: Path, error: ValidationError, models: Mapping[tuple[str, ...], type[BaseModel]]
) -> TopologyError:
    """The most telling of pydantic's errors as a sentence; `models` are those by key path."""
    details = error.errors(include_url=False, include_input=True)
    first = next((detail for detail in details if detail["type"] == "extra_forbidden"), details[0])
    location = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        return _unknown_key(path, location, models, alone=first["input"] is None)
    location, problem = _several_kinds(location) or (location, _problem(first))
    if problem == "must be a mapping, not a text" and len(location) < 3:
        problem += f"; write {_SHAPES.get(location[0], 'KEY: VALUE, each on a line below')}"
    location = [part for part in location if part != "[key]"]
    key = ".".join(location)
    sentence = f"{key} {problem}" if key else problem  # a whole-file check names the key first
    return TopologyError(f"{path}: {sentence}")


def _unknown_key(
    path: Path, location: list[str], models: Mapping[tuple[str, ...], type[BaseModel]], alone: bool
) -> TopologyError:
    """`alone`: it has no value."""
    *parents, name = location
    # the keys below these are names that the user chose
    named = (("clusters",), ("flows",), ("objectives", "flows"))
    shape = tuple("*" if tuple(parents[:i]) in named else part for i, part in enumerate(parents))
    known = [field.alias or key for key, field in models[shape].model_fields.items()]
    key = ".".join(location)
    is_flow = shape in (("defaults",), ("flows", "*"))
    why = reason(name) if is_flow and normal(name) not in known else None
    message = (
        f"{key} is a setting of MirrorMaker 2 that mirrorlake does not need: {why}" if why else None
    )
    if message is None and alone:  # most likely the second text of a list without brackets
        message = f"unknown key {key}, which has no value; a list of texts is written [a, b]"
    return TopologyError(f"{path}: {message or f'unknown key {key}{nearest(name, known)}'}")


def _several_kinds(location: list[str]) -> tuple[list[str], str] | None:
    """The key, and a sentence on what is allowed, where pydantic reports each of several types."""
    roles = ("consumer", "producer", "admin")
    if len(location) > 4 and location[0] == "clusters" and location[2] in roles:
        return location[:4], "must be a string, a whole number, true or false"
    depth = {"defaults": 2, "flows": 3}.get(location[0], 0) if location else 0
    if len(location) > depth > 0 and location[depth - 1] == "paused":
        return location[:depth], "must be true, false or a list of patterns"
    return None


def _problem(detail: ErrorDetails) -> str:
    """Say what is wrong with the value of one key, without the value."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind in ("greater_than_equal", "less_than_equal"):
        if "ge" in context:
            return f"must be at least {context['ge']}"
        return f"must be at most {context['le']}"
    if kind in ("too_short", "string_too_short"):
        return "is empty"
    expected = _TYPES.get(kind.removesuffix("_type").removesuffix("_attributes"))
    if expected:
        kind = type(detail["input"]).__name__
        given = _TYPES.get({"str": "string", "list": "tuple"}.get(kind, kind), expected)
        return f"must be {expected}" + (f", not {given}" if given != expected else "")
    return f"is not valid: {detail['msg']}"


def _where(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark, problem = error.problem_mark or error.context_mark, str(error.problem)
        hints = (f"; {hint}" for text, hint in _HINTS.items() if text in problem)
        problem += next(hints, "")
        return f" in line {mark.line + 1}: {problem}" if mark else f": {problem}"
    return f": {first_line(error)}"
