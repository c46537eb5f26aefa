"""The log of a command: one JSON object a line for machines, plain lines for a pipe, and no secret
in either."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from mirrorlake.cli import logs
from mirrorlake.config.redaction import without_secrets_in_line
from mirrorlake.errors import TargetRefused

SECRET = "hunter2"


def record(message: str, *args: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord(
        "mirrorlake.run.flow_worker", logging.WARNING, __file__, 1, message, args, None
    )
    vars(made).update(more)
    return made


def document(made: logging.LogRecord) -> dict[str, object]:
    line = logs.JsonFormatter().format(made)
    assert "\n" not in line
    found: dict[str, object] = json.loads(line)
    return found


def test_a_line_of_json_has_time_level_logger_message_and_facts() -> None:
    found = document(
        record("flow %s: %s; trying again", "east->west", "no\nanswer", created=0.25, msecs=250.0)
    )
    assert found == {
        "ts": "1970-01-01T00:00:00.250Z",
        "level": "WARNING",
        "logger": "mirrorlake.run.flow_worker",
        "message": "flow east->west: no\nanswer; trying again",
        "flow": "east->west",
    }


def test_facts_come_from_the_line_and_from_its_error() -> None:
    error = TargetRefused("too large", topic="orders", partition=3)
    found = document(record("%s", error, facts={"flow": "a->b", "ts": "mine", "path": Path("x")}))
    assert (found["topic"], found["partition"], found["flow"], found["path"]) == (
        "orders",
        3,
        "a->b",
        "x",
    )
    assert found["ts"] != "mine", "what every line has is not overwritten"


def test_a_traceback_stays_in_its_object() -> None:
    try:
        raise ValueError(f"password={SECRET}")
    except ValueError:
        made = record("flow a->b stopped", exc_info=sys.exc_info())
    found = document(made)
    assert "ValueError" in str(found["exception"]) and SECRET not in json.dumps(found)


HIDING = (
    f"https://me:{SECRET}@server:5000/x answers",
    f"sasl.password={SECRET}, then more",
    f'PlainLoginModule required username="mirror" password="{SECRET}\\";";',
    f"{{'sasl.password': '{SECRET}', 'x': 1}}",
    f'{{"client_secret": "{SECRET}"}}',
    *(
        f"{name}={SECRET}"
        for name in (
            "aws_secret_access_key",
            "AZURE_STORAGE_ACCOUNT_KEY",
            "azure_storage_sas_key",
            "aws_sse_customer_key_base64",
        )
    ),
    f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY----- {SECRET}",
)


@pytest.mark.parametrize("text", HIDING)
@pytest.mark.parametrize("formatter", [logs.JsonFormatter(), logs.RedactedFormatter("%(message)s")])
def test_no_line_holds_a_secret(formatter: logging.Formatter, text: str) -> None:
    for made in (
        record(text),
        record("it said %s", text),
        record("it", facts={"said": text, "all": [text]}),
    ):
        assert SECRET not in formatter.format(made)


@pytest.mark.parametrize(
    "text",
    [
        "secret east/password is missing: set MIRRORLAKE_SECRETS",
        "password=${env:WEST_PASSWORD}, which is not set",
        "cluster west (https://host/x?y=1) does not answer; token: expired",
        "orders-0: offsets 3 to 7, see docs/security.md",
    ],
)
def test_what_is_no_secret_is_told(text: str) -> None:
    assert without_secrets_in_line(text) == text


SCRIPT = """
import logging, sys, warnings
from mirrorlake.cli import logs
from mirrorlake.cli.context import Context
from pathlib import Path
shared = Context(Path("x"))
logs.install(lambda: shared.err, False)
logs.install(lambda: shared.err, False, logs.Form(sys.argv[1]))
logging.getLogger("mirrorlake.run").info("not told")
logging.getLogger("mirrorlake.library.progress").info("flow a->b: a phase")
logging.getLogger("py4j.x").error("not told")
shared.say("1,000 records")
if sys.argv[1] == "json":
    warnings.warn("mind this")
    raise RuntimeError("odd")
"""


def said(form: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, form],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_every_line_is_json_for_machines() -> None:
    lines = [json.loads(line) for line in said("json")]
    assert [line["message"] for line in lines[:2]] == ["flow a->b: a phase", "1,000 records"]
    assert "mind this" in lines[2]["message"] and lines[3]["message"] == "odd"
    assert "RuntimeError" in lines[-1]["exception"] and lines[-1]["level"] == "CRITICAL"


@pytest.mark.parametrize("form", ["auto", "plain"])
def test_plain_lines_where_there_is_no_terminal(form: str) -> None:
    first, second = said(form)
    assert first[10] == "T" and first.endswith("Z INFO flow a->b: a phase")
    assert second == "1,000 records"


RECORDED = """
import logging
from mirrorlake.cli import logs
logs.install(lambda: None, True, logs.Form.json)
import mlflow, mlflow.store.db.utils
logging.getLogger("mlflow.store.db.utils").error("INSERT INTO metrics")
logging.getLogger("alembic.runtime.migration").info("Running upgrade")
"""


def test_what_records_runs_writes_nothing_beside_our_lines() -> None:
    """Lines of a form of its own, which no reader of JSON takes, and which hide no secret."""
    done = subprocess.run(
        [sys.executable, "-c", RECORDED], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
