"""Value types shared by the models of a topology file."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from mirrorlake.naming.patterns import check_pattern


def names_of(value: object) -> object:
    """Split one comma-separated text into a tuple, as Kafka's own configuration writes lists."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts):
        return tuple(part.strip() for part in parts if part.strip())
    return value


def patterns_of(value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a list with a regex that Java and Python would read differently."""
    for pattern in value:
        if reason := check_pattern(pattern):
            raise ValueError(f"holds the invalid regular expression {pattern!r}: {reason}")
    return value


def relative_to_file(value: str | None, info: ValidationInfo) -> str | None:
    """Resolve a path from the topology file's folder; keep URLs, PEM text and references."""
    directory = (info.context or {}).get("directory")
    if (
        not value
        or directory is None
        or value.startswith(("${", "-----BEGIN"))
        or re.match(r"[A-Za-z][\w+.-]*:", value)
    ):
        return value
    try:
        return str(directory / Path(value).expanduser())
    except RuntimeError:
        user = Path(value).parts[0]
        raise ValueError(f"names {user}, a home that this machine does not know") from None


Names = Annotated[tuple[str, ...], BeforeValidator(names_of)]
Override = dict[str, str | int | bool]


class Model(BaseModel):
    """Base of all models: refuses unknown keys, converts nothing, quotes no value in an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)
