"""The log of a command, on stderr: for a terminal, plain for a pipe, or one JSON object a line.

Secrets are hidden in all of them (`config/redaction.py: without_secrets_in_line`).
"""

import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mirrorlake.errors import MirrorlakeError

if TYPE_CHECKING:
    from rich.console import Console

logger = logging.getLogger(__name__)

#: Loggers of a command's progress, shown without `-v` too.
TELLING = ("mirrorlake.cli", "mirrorlake.library.progress")
_FLOW = re.compile(r"\bflow ([\w.-]+->[\w.-]*\w)")


class Form(str, Enum):
    """How the log looks: `auto` is for people at a terminal, and plain lines elsewhere."""

    auto = "auto"
    plain = "plain"
    json = "json"


class RedactedFormatter(logging.Formatter):
    """A line without secrets, tracebacks included."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """The line, or lines."""
        return _hidden(super().format(record))


class JsonFormatter(logging.Formatter):
    """A record as one JSON object: ts, level, logger, message, and its facts, such as the flow."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """The object, on one line."""
        message = record.getMessage()
        document: dict[str, object] = {
            "ts": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{record.msecs:03.0f}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": message,
        }
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        for name, value in _facts(record, message).items():
            document.setdefault(name, value)
        return json.dumps(_plain(document), ensure_ascii=False)


def install(console: "Callable[[], Console]", verbose: bool, form: Form = Form.auto) -> None:
    """Send the log to stderr; `console` makes the console of a terminal. As `logging.basicConfig`
    does, it leaves alone what a program that called us has installed."""
    root = logging.getLogger()
    ours = [
        handler
        for handler in root.handlers
        if isinstance(handler.formatter, RedactedFormatter | JsonFormatter)
    ]
    if len(ours) != len(root.handlers):
        return
    for handler in ours:
        root.removeHandler(handler)
    root.addHandler(_handler(console, form))
    root.setLevel(logging.INFO if verbose else logging.WARNING)
    for name in TELLING:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger("pyspark").setLevel(logging.ERROR)
    # It prints the traceback of each callback from Spark that raises, as one of a query being
    # stopped does; we get the same exception from the query.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger("sqlglot").setLevel(logging.WARNING)
    # MLflow bypasses our formats, with database statements and tracebacks of reported errors.
    os.environ["MLFLOW_CONFIGURE_LOGGING"] = "false"
    logging.getLogger("mlflow").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if form is Form.json:
        logging.captureWarnings(True)
        sys.excepthook = _log_uncaught


def as_json() -> bool:
    """Whether stderr is for machines: what has a line for a person logs it then."""
    return any(
        isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers
    )


def _handler(console: "Callable[[], Console]", form: Form) -> logging.Handler:
    if form is Form.auto and sys.stderr.isatty():
        from rich.logging import RichHandler

        shown: logging.Handler = RichHandler(console=console(), show_path=False, markup=False)
        shown.setFormatter(RedactedFormatter("%(message)s"))
        return shown
    plain = logging.StreamHandler()
    lines = RedactedFormatter("%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    plain.setFormatter(JsonFormatter() if form is Form.json else lines)
    return plain


def _facts(record: logging.LogRecord, message: str) -> Mapping[str, Any]:
    """What a line is about: what it was given, its error's attributes, and the flow it names."""
    facts: dict[str, Any] = dict(getattr(record, "facts", {}))
    for value in record.args if isinstance(record.args, tuple) else ():
        if isinstance(value, MirrorlakeError):
            given = {
                name: fact
                for name, fact in vars(value).items()
                if name != "message" and fact is not None
            }
            facts = {**given, **facts}
    named = _FLOW.search(message)
    return facts if named is None else {"flow": named.group(1), **facts}


def _plain(value: object) -> object:
    """A value as JSON has them, without secrets; what JSON has not becomes its text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return _hidden(str(value))


def _hidden(text: str) -> str:
    # imported for the first line only: a slow import
    from mirrorlake.config.redaction import without_secrets_in_line

    return without_secrets_in_line(text)


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    logger.critical("%s", error, exc_info=(kind, error, trace))
