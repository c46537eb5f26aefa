"""The cost of `verify` beside a plain Spark job that reads the same, each in a cold process."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from mirrorlake.devtools.bench.contestants import Job, mirrorlake_command, write_topology
from mirrorlake.devtools.bench.measure import seconds_of
from mirrorlake.devtools.bench.payload import load_topic
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin import ClusterAdmin


def measure_proof(job: Job, source: ClusterAdmin, size: int, records: int) -> dict[str, Any]:
    """Mirror a topic, prove it by content, and read it by Spark. Returns {"records",
    "record_bytes", "verify_seconds", "spark_seconds", "ratio"}; `ratio` is verify's rate to
    Spark's.

    Raises:
        ReplicationError: a command fails, or not every record is proven.
    """
    load_topic(source, job.topic, size, records, job.directory)
    write_topology(job)
    _run(job, mirrorlake_command(job, "run", "--once"))
    proven: dict[str, Any] = {}
    command = mirrorlake_command(job, "verify", "--topic", job.topic, "--json")
    verify_seconds = seconds_of(lambda: proven.update(json.loads(_run(job, command))))
    if proven["proven"] != records or proven["differences"]:
        raise ReplicationError(
            f"{proven['proven']:,} of {records:,} records were proven: see {job.directory}"
        )
    reader = [sys.executable, "-m", "tests.bench.plain_read", job.source, job.topic]
    reader += [job.target, job.target_topic, str(job.directory / "lake" / "records")]
    spark_seconds = seconds_of(lambda: _run(job, reader))
    return {
        "records": records,
        "record_bytes": size,
        "verify_seconds": round(verify_seconds, 2),
        "spark_seconds": round(spark_seconds, 2),
        "ratio": round(spark_seconds / verify_seconds, 2),
    }


def _run(job: Job, command: Sequence[str]) -> str:
    """Run a command and return its output. Raises ReplicationError if it fails."""
    with (job.directory / "proof.log").open("ab") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, check=False)
    if done.returncode != 0:
        raise ReplicationError(
            f"{' '.join(command[:5])} … failed: see {job.directory / 'proof.log'}"
        )
    return done.stdout
