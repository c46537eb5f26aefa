"""What a person waits for, and what an idle flow costs: cold commands, starts, and the CPU of a
quiet flow."""

import math
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from confluent_kafka import Producer

from mirrorlake.attempts import attempts
from mirrorlake.devtools.bench.contestants import Job, Running, mirrorlake_command
from mirrorlake.devtools.bench.measure import ends_of, is_there, seconds_of
from mirrorlake.devtools.bench.payload import PARTITIONS
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.processes import cpu_seconds

#: A flow is measured once its start is over, seconds.
SETTLE_SECONDS = 60.0
IDLE_SECONDS = 60.0
_START_SECONDS = 180.0
_PORT = 28_765
#: How idiomatic code without mirrorlake counts the rows of a table.
_BY_SPARK = """
import sys
from mirrorlake.spark.session import local_session
print(local_session().table(sys.argv[1]).count())
"""


@dataclass(frozen=True)
class Commands:
    """Seconds of cold commands, by name."""

    help: float
    status: float
    translate: float
    groups: float
    sql: float


@dataclass(frozen=True)
class Feel:
    """Seconds from the start of a process to the first records at the target, on nothing and where
    it ran before, and the cores that an idle flow takes, heartbeats included. The rest is
    mirrorlake's alone."""

    start_new_seconds: float
    start_again_seconds: float
    idle_cores: float
    running: Commands | None = None
    stopped: Commands | None = None
    dashboard_seconds: float | None = None
    spark_count_seconds: float | None = None


def measure_feel(
    job: Job, target: ClusterAdmin, start: Callable[[Job], Running], commands: bool
) -> Feel:
    """Start a contestant on a topic with records, let it be idle, stop it, start it again.

    Args:
        job: its topic is there, and empty.
        target: the target cluster.
        start: starts the contestant.
        commands: whether mirrorlake's commands are to be timed, beside the idle flow and after it.
    """
    _send(job, 100)
    new, (idle, running) = _first_out(
        job, target, start, lambda running: _idle(running, job, commands)
    )
    stopped = _commands(job) if commands else None
    feel = Feel(new, 0.0, idle, running, stopped)
    if commands:
        feel = replace(
            feel, dashboard_seconds=page_seconds(job), spark_count_seconds=_by_spark(job)
        )
    _send(job, 100)
    again, _ = _first_out(job, target, start, lambda running: None)
    return replace(feel, start_again_seconds=again)


def feel_document(feels: Mapping[str, Feel]) -> dict[str, Any]:
    """The figures of all contestants."""
    return {name: asdict(feel) for name, feel in feels.items()}


def _send(job: Job, count: int) -> None:
    producer = Producer({"bootstrap.servers": job.source, "log_level": 3})
    for number in range(count):
        producer.produce(job.topic, b"%d" % number, partition=number % PARTITIONS)
    producer.flush(30)


def _first_out(
    job: Job, target: ClusterAdmin, start: Callable[[Job], Running], then: Callable[[Running], Any]
) -> tuple[float, Any]:
    """Start, time the first records that come out, do something beside it, stop."""
    before = _written(target, job)
    began = time.monotonic()
    running = start(job)
    try:
        running.wait_until(
            lambda: _written(target, job) > before,
            _START_SECONDS,
            lambda: f"nothing came through {running.name}",
        )
        return round(time.monotonic() - began, 1), then(running)
    finally:
        running.stop()


def _written(target: ClusterAdmin, job: Job) -> int:
    return ends_of(target, job.target_topic)[1] if is_there(target, job.target_topic) else 0


def _idle(running: Running, job: Job, commands: bool) -> tuple[float, Commands | None]:
    return idle_cores(running), _commands(job) if commands else None


def idle_cores(
    running: Running, settle: float = SETTLE_SECONDS, seconds: float = IDLE_SECONDS
) -> float:
    """Cores of a flow at which nothing happens, over so many seconds once its start is over."""
    pause = threading.Event()
    pause.wait(settle)
    before, began = cpu_seconds(running.pids), time.monotonic()
    pause.wait(seconds)
    cores = round((cpu_seconds(running.pids) - before) / (time.monotonic() - began), 3)
    running.check()
    return cores


def _commands(job: Job) -> Commands:
    flow = f"{job.alias}->west"
    place = ("--topic", job.topic, "--partition", "0", "--offset", "1")
    return Commands(
        help=command_seconds(job, "--help"),
        status=command_seconds(job, "status"),
        translate=command_seconds(job, "translate", "--flow", flow, *place),
        groups=command_seconds(job, "groups", "--flow", flow),
        sql=command_seconds(job, "sql", "SELECT count(*) FROM records"),
    )


def command_seconds(job: Job, *words: str) -> float:
    """Seconds of one command in a process of its own."""

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
    """Seconds from the command to the page and its figures."""
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
    """Seconds in which a Spark session that is made for it counts the records of the stage; None
    where it cannot reach them."""
    if job.lake.stage is None:
        return None
    command = [sys.executable, "-c", _BY_SPARK, job.lake.stage]
    return round(seconds_of(lambda: subprocess.run(command, capture_output=True, check=True)), 1)
