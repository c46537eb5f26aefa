"""Measures what a person waits for, and a quiet flow: cold commands, starts, and CPU."""

import math
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from mirrorlake.attempts import attempts
from mirrorlake.devtools.bench.contestants import Job, Running, mirrorlake_command
from mirrorlake.devtools.bench.measure import idle_cores, seconds_of, send, started, started_again
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin

_PORT = 28_765
#: Idiomatic code without mirrorlake that counts the rows of a table.
_BY_SPARK = """
import sys
from mirrorlake.spark.session import local_session
print(local_session().table(sys.argv[1]).count())
"""


def measure_feel(
    job: Job, target: ClusterAdmin, start: Callable[[Job], Running], commands: bool
) -> dict[str, Any]:
    """Start a contestant on a topic with records, let it idle, stop it, start it again.

    Returns seconds from the start of a process to the first records at the target, at a first start
    and at a restart, and the cores of an idle flow, heartbeats included. The rest is mirrorlake's
    alone: seconds of cold commands by name, beside the idle flow and after it, of the dashboard,
    and of a count of the stage by Spark.

    Args:
        job: its topic exists and is empty.
        target: the target cluster.
        start: starts the contestant.
        commands: whether to time mirrorlake's commands, beside the idle flow and after it.
    """
    place = (job.topic, 0)
    send(job.source, [place] * 100)
    with started(job, target, start, {place: 1}) as (running, new):
        idle = idle_cores(running)
        beside = _commands(job) if commands else None
    return {
        "start_new_seconds": new,
        "idle_cores": idle,
        "running": beside,
        "stopped": _commands(job) if commands else None,
        "dashboard_seconds": page_seconds(job) if commands else None,
        "spark_count_seconds": _by_spark(job) if commands else None,
        "start_again_seconds": started_again(job, target, start, place),
    }


def _commands(job: Job) -> dict[str, float]:
    return {
        "help": command_seconds(job, "--help"),
        **cold_commands(job, job.topic),
        "sql": command_seconds(job, "sql", "SELECT count(*) FROM records"),
    }


def cold_commands(job: Job, topic: str) -> dict[str, float]:
    """Seconds of each command that inspects a flow, by name."""
    flow = f"{job.alias}->west"
    place = ("--topic", topic, "--partition", "0", "--offset", "1")
    return {
        "status": command_seconds(job, "status"),
        "translate": command_seconds(job, "translate", "--flow", flow, *place),
        "groups": command_seconds(job, "groups", "--flow", flow),
    }


def command_seconds(job: Job, *words: str) -> float:
    """Seconds of one command in its own process."""

    def run() -> None:
        done = subprocess.run(
            mirrorlake_command(job, *words), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ReplicationError(
                f"`mirrorlake {' '.join(words)}` ended with {done.returncode}: {done.stderr[-500:]}"
            )

    return round(seconds_of(run), 2)


def page_seconds(job: Job) -> float:
    """Seconds from the command to the loaded page and its data."""
    command = mirrorlake_command(job, "dashboard", "--no-open", "--port", str(_PORT))
    began = time.monotonic()
    log = job.directory / "dashboard.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        for part in ("", "data.json"):
            _answered(f"http://127.0.0.1:{_PORT}/{part}", process)
        return round(time.monotonic() - began, 1)
    finally:
        process.terminate()
        process.wait()


def _answered(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until there is an answer."""
    for _ in attempts(math.inf, 0.05):
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=120) as answer:
                answer.read()
                return
        except urllib.error.HTTPError:
            raise
        except OSError:
            continue
    raise ReplicationError("`mirrorlake dashboard` ended by itself")


def _by_spark(job: Job) -> float | None:
    """Seconds in which a new Spark session counts the stage; None if it cannot reach it."""
    if job.lake.stage is None:
        return None
    command = [sys.executable, "-c", _BY_SPARK, job.lake.stage]
    return round(seconds_of(lambda: subprocess.run(command, capture_output=True, check=True)), 1)
