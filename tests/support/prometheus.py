"""A real Prometheus on this machine (Debian's package `prometheus`), with the rules of `ops/`."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import server
from tests.support.promql import OPS
from tests.support.waiting import until


class Prometheus:
    """A running server, which is asked by its HTTP interface."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/api/v1"

    def series(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """What an expression gives now: labels and value. Raises HTTPError for one that is none."""
        with urlopen(f"{self._address}/query?{urlencode({'query': expression})}") as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        return {labels["alertname"] for labels, _ in self.series('ALERTS{alertstate="firing"}')}


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Prometheus]:
    """A server that scrapes `target` and judges its rules each second; skips where there is no
    program of that name."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    (port,) = free_ports(1)
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(OPS / "prometheus" / "alerts.yml")],
        "scrape_configs": [{"job_name": "mirrorlake", "static_configs": [{"targets": [target]}]}],
    }
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [program, f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with server(command, port, folder / "prometheus.log"):
        # it listens before it answers questions
        until(lambda: answer(port, "/-/ready")[0] == 200, "Prometheus is ready")
        yield Prometheus(port)


#: What has a value only where something special happens.
RARE = {"mirrorlake_open_transaction_timestamp_seconds", "mirrorlake_paused"}


def answer(port: int, path: str) -> tuple[int, str]:
    """Status and text; 0 where nothing listens."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as got:
            return got.status, got.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()
    except URLError:
        return 0, ""
