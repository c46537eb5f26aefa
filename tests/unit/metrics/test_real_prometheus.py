"""A real Prometheus (Debian's package of that name), where it is installed: it scrapes what is
served, and our rules fire and end in it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import time
from urllib.request import urlopen

import pytest
import yaml

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.metrics.facts import Facts, FlowFacts, FlowInForce, PartitionSample
from mirrorlake.metrics.server import serving
from tests.support.promql import OPS
from tests.support.waiting import until

PROMETHEUS = shutil.which("prometheus")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed"),
]
FLOW = FlowInForce("east->west", objectives={"lag": 60, "stuck": 600, "latency_p99": 5})


def standing(lag_seconds: float, incidents: int) -> Facts:
    """A flow with one partition, which was sampled just now."""
    now = time()
    sample = PartitionSample(
        5, lag_seconds=lag_seconds, source_end=9, produced_end=4, target_end=4, moved_at=now
    )
    flow = FlowFacts(samples={("orders", 0): sample}, sampled_at=now)
    return Facts(
        {FLOW.name: flow},
        in_force=(FLOW,),
        incidents={(FLOW.name, "target_refused"): incidents} if incidents else {},
        build={"version": "1", "python": "3", "librdkafka": "2"},
        now=now,
    )


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[int]:
    """One with our rules, which looks each second; gives its port."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(OPS / "prometheus" / "alerts.yml")],
        "scrape_configs": [
            {"job_name": "mirrorlake", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    port = free_ports(1)[0]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(PROMETHEUS),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield port
    finally:
        process.terminate()
        process.wait(30)


def firing(port: int) -> set[str]:
    """The names of the alerts that fire."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/v1/alerts", timeout=5) as answer:
            alerts = json.load(answer)["data"]["alerts"]
    except OSError:
        return {"it does not answer"}
    return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def test_alerts_fire_and_end(tmp_path: Path) -> None:
    late = [standing(0.0, 0)]
    with (
        serving("127.0.0.1:0", lambda: replace(late[0], now=time()), 1000) as target,
        prometheus(tmp_path, target) as port,
    ):
        until(lambda: firing(port) == set(), "it has come up, and nothing fires")
        late[0] = standing(61.0, 2)
        until(lambda: firing(port) == {"MirrorlakeLag", "MirrorlakeIncident"}, "both fire")
        late[0] = standing(1.0, 0)
        until(lambda: firing(port) == set(), "both have ended")
