"""As much of a workspace as lends credentials for a path, on loopback."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import HttpAnswer, HttpRequest, http_server, json_answer


class Workspace:
    """Lends.

    Attributes:
        url: its address.
        key: the access key of S3 that is lent now.
        seconds: for how long it is good.
        answers: what is answered instead, one after the other: a status and a document.
        asked: the paths and bodies of what was asked.
    """

    def __init__(self) -> None:
        self.url = ""
        self.key, self.seconds = "first", 3_600.0
        self.answers: list[tuple[int, dict[str, Any]]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []

    @property
    def environment(self) -> dict[str, str]:
        """By which Databricks' SDK reaches it."""
        return {"DATABRICKS_HOST": self.url, "DATABRICKS_TOKEN": "of-the-job"}

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """What a request for credentials gets; there is nothing else that the SDK may know of a
        host."""
        if request.method != "POST":
            return json_answer(404, {})
        self.asked.append((request.path, json.loads(request.body)))
        if self.answers:
            return json_answer(*self.answers.pop(0))
        aws = {"access_key_id": self.key, "secret_access_key": "secret", "session_token": "token"}
        until = int((time.time() + self.seconds) * 1_000)
        return json_answer(200, {"aws_temp_credentials": aws, "expiration_time": until})


@contextmanager
def lending_workspace() -> Iterator[Workspace]:
    """One for the time of the block."""
    workspace = Workspace()
    with http_server(workspace.answer) as workspace.url:
        yield workspace
