"""What runs with the package alone, or with Spark and little else: libraries that are not there are
not missed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mirrorlake.extras import EXTRAS
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, read_topic, record_count
from tests.support.libraries import BASE, OF_A_TASK
from tests.support.replication import write_topology
from tests.support.topologies import fill

ROOT = Path(__file__).parents[2]
#: Every batch goes through Spark's tasks.
LONG_WAY = {"small_batch_records": 0}
#: Every library but Spark's own and those of a task. Spark takes psutil where that is there.
NOT_ON_A_WORKER = sorted(
    {*BASE, *(module for extra in EXTRAS.values() for module in extra.libraries)}
    - OF_A_TASK
    - {"pyspark", "py4j", "pandas", "psutil"}
)
#: Python reads it at each start: what Spark starts, or forks from, finds none of the libraries.
AT_START = f"""import sys
if any(word.startswith("pyspark.") or word.endswith(".worker_daemon") for word in sys.orig_argv):
    from tests.support.missing import Missing
    sys.meta_path.insert(0, Missing({NOT_ON_A_WORKER!r}))
"""


def run_once(topology: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", *command, "-c", str(topology), "run", "--once", "--json"]
    return subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **more}, check=False
    )


@pytest.mark.slow
def test_workers_of_spark_need_three_libraries(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, LONG_WAY
    )
    create_topic(clusters.east, topic_name, 2)
    fill(clusters.east, topic_name, "a", 200, 2)
    (tmp_path / "sitecustomize.py").write_text(AT_START, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = run_once(topology, "mirrorlake", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr[-4000:]
    flow = json.loads(done.stdout)["flows"]["east->west"]
    assert (flow["records"], flow["short_batches"]) == (200, 0)
    assert record_count(clusters.west, f"east.{topic_name}") == 200


@pytest.mark.wide("bundle/test_wheel.py::test_the_wheel_alone_answers_and_names_what_else_there_is")
def test_a_run_that_comes_to_need_spark_names_what_to_install(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Few records need none, and arrive. Many are landed by it: none of them is, and the run says
    why."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, {})
    create_topic(clusters.east, topic_name)
    fill(clusters.east, topic_name, "a", 10, 1)
    without = ("tests.support.missing", ",".join(EXTRAS["spark"].libraries))
    done = run_once(topology, *without)
    assert done.returncode == 0, done.stderr[-4000:]
    write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, LONG_WAY)
    fill(clusters.east, topic_name, "b", 10, 1)
    done = run_once(topology, *without)
    assert done.returncode == 2, done.stderr[-4000:]
    assert done.stderr.strip().endswith(
        "pyspark, which is not installed: pip install 'mirrorlake[spark]'"
    )
    assert len(read_topic(clusters.west, f"east.{topic_name}")[0]) == 10
