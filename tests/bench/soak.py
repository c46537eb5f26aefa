"""Measures whether memory grows at full rate: `mirrorlake run` over a topic that is kept full."""

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from mirrorlake.devtools.bench.contestants import Job, Running
from mirrorlake.devtools.bench.measure import DRIVER, WORKERS, ends_of
from mirrorlake.devtools.bench.payload import load_command, payload_file
from mirrorlake.errors import InputError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.processes import cpu_seconds, memory_mib

#: Records of a load; the next begins when so many are left to mirror, for a steady backlog.
_SLICE = 6_000_000
_BYTES = 120
#: Few distinct records, which compress well: an hour of them fits on a laptop's disk.
_LINES = 20
#: What source and target retain per partition: many times what may be left to mirror.
KEPT = {"retention.bytes": str(512 << 20), "segment.bytes": str(64 << 20)}
_LOOK_SECONDS = 5.0
#: Samples per line of output.
_SAMPLES_A_LINE = 12
#: The number of stretches of time; memory is compared from the second one on, after the warm-up.
_STRETCHES = 6
#: The processes whose memory is sampled.
MEMORY = ("driver_mib", "jvm_mib", "workers_mib")


@dataclass(frozen=True)
class SoakSample:
    """Seconds since the first record, records at the target, and MiB of each kind of process,
    without mapped files, which the system can reclaim."""

    at: float
    written: int
    driver_mib: float
    jvm_mib: float
    workers_mib: float
    cpu: float


def measure_soak(
    running: Running, job: Job, target: ClusterAdmin, minutes: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Fill the job's topic, which must exist and be empty, and watch. Returns the `soak_document`.

    Raises ReplicationError when a process ends, InputError when the topic cannot be filled.
    """
    feed = _Feed(job, payload_file(job.directory, _BYTES, _LINES))
    samples: list[SoakSample] = []
    pause = threading.Event()
    begun: float | None = None
    try:
        while begun is None or time.monotonic() - begun < minutes * 60:
            running.check()
            written, _ = ends_of(target, job.target_topic)
            feed.go_on(written)
            if written:
                begun = begun or time.monotonic()
                samples.append(_sample(running, time.monotonic() - begun, written))
                if len(samples) % _SAMPLES_A_LINE == 0:
                    one = samples[-1]
                    memory = ", ".join(f"{name} {getattr(one, name):,.0f}" for name in MEMORY)
                    say(f"soak: {one.at / 60:.0f} min, {one.written:,} records, {memory}")
            pause.wait(_LOOK_SECONDS)
    finally:
        feed.end()
    return soak_document(samples)


def soak_document(samples: Sequence[SoakSample]) -> dict[str, Any]:
    """Rate and memory (medians) by stretch, and memory's growth from the second to the last."""
    length = samples[-1].at / _STRETCHES
    stretches = []
    for number in range(_STRETCHES):
        part = [one for one in samples if number * length <= one.at <= (number + 1) * length]
        seconds, records = part[-1].at - part[0].at, part[-1].written - part[0].written
        stretches.append(
            {
                "minutes": round(part[-1].at / 60, 1),
                "records_per_second": round(records / seconds),
                "cpu_seconds_per_million": round(
                    (part[-1].cpu - part[0].cpu) / max(1, records) * 1e6, 2
                ),
                **{name: round(median(getattr(one, name) for one in part)) for name in MEMORY},
            }
        )
    growth = {name: stretches[-1][name] - stretches[1][name] for name in MEMORY}
    return {
        "records": samples[-1].written,
        "stretches": stretches,
        "growth": growth,
        "last": asdict(samples[-1]),
    }


class _Feed:
    """Fills a topic slice by slice: its mirror always has a backlog and never falls far behind."""

    def __init__(self, job: Job, payload: Path) -> None:
        self._command = load_command(job.source, job.topic, _SLICE, payload)
        self._log = job.directory / "load.log"
        self._sent = 0
        self._loading: subprocess.Popen[bytes] | None = None

    def go_on(self, written: int) -> None:
        """Begin the next slice if it is time. Raises InputError when the last one failed."""
        if self._loading is not None and (code := self._loading.poll()) is not None:
            if code != 0:
                raise InputError(f"the topic could not be filled: see {self._log}")
            self._sent, self._loading = self._sent + _SLICE, None
        if self._loading is None and self._sent - written <= _SLICE:
            with self._log.open("ab") as output:
                self._loading = subprocess.Popen(self._command, stdout=output, stderr=output)

    def end(self) -> None:
        """Stop loading."""
        if self._loading is not None:
            self._loading.kill()
            self._loading.wait()


def _sample(running: Running, at: float, written: int) -> SoakSample:
    return SoakSample(
        at=round(at, 1),
        written=written,
        driver_mib=memory_mib(running.pids, DRIVER, own=True),
        jvm_mib=memory_mib(
            running.pids, "org.apache.spark.deploy.SparkSubmit", program="java", own=True
        ),
        workers_mib=memory_mib(running.pids, WORKERS, own=True),
        cpu=round(cpu_seconds(running.pids), 1),
    )
