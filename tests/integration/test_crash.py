"""Killed with -9 at the worst moments and started again: nothing lost, nothing twice, the map exact
(DESIGN.md, "Guarantees, and where they come from")."""

import shutil
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from threading import enumerate as enumerate_threads

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from mirrorlake import failpoints
from mirrorlake.lake.delta_log import DeltaLog
from mirrorlake.lake.place import place_of
from mirrorlake.native import SWITCH
from tests.support.clusters import ClusterPair
from tests.support.commands import exit_code
from tests.support.kafka import (
    NewRecord,
    create_topic,
    numbered,
    partition_count,
    record_count,
    send,
    write,
)
from tests.support.lake_rows import now_of
from tests.support.lanes import LANES
from tests.support.replication import (
    assert_same,
    finish,
    replicate_once,
    replicating,
    start_command,
    write_topology,
)

PARTITIONS = 3
SLOW = pytest.mark.slow
#: Small landed batches, so that a run is many of them: by Spark's tasks, or by the driver itself.
LONG_WAY = {"max_records_per_batch": 1_500, "small_batch_records": 0}
SHORT_WAY = {"max_records_per_batch": 1_500}
#: Records that wait for each test: two batches.
WAITING = 3_000
#: Where a driver dies in turn, and whether natively, on the long way and on the short one: wherever
#: something was just written, in a transaction of a task, or at all points that lie on a way.
#: Records as Python's objects take a Spark session, also where they are few.
WRITTEN = ((), (("landed", ""), ("kafka-committed", ""), ("produced", "")))
IN_A_TASK = ((("mid-transaction", "off"),), ())
ALL = tuple(
    tuple(zip([at for at in failpoints.POINTS if at != other], cycle(lanes)))
    for other, lanes in (("taken", ("", "off")), ("file-written", ("off", "")))
)
#: How a Python worker dies in turn: at a point that it passes (a worker can take the driver with it
#: too), by which signal, and whether it produces natively.
KILLS_IN_WORKERS = (("mid-transaction", "SIGSEGV", ""), ("kafka-committed", "SIGKILL", ""))
MORE_KILLS_IN_WORKERS = (
    ("file-written", "SIGKILL", ""),
    ("file-written", "SIGSEGV", ""),
    ("mid-transaction", "SIGKILL", "off"),
)


@dataclass
class Scene:
    """A flow that all tests of this file share: each writes more, breaks something, and compares
    all there is."""

    folder: Path
    topology: Path
    topic: str
    east: str
    west: str
    written: int = 0

    @property
    def names(self) -> dict[str, str]:
        return {self.topic: f"east.{self.topic}"}

    def write(self, count: int) -> None:
        write(self.east, self.topic, numbered(count, PARTITIONS, self.written, size=10))
        self.written += count

    def recovers(self, spark: SparkSession) -> None:
        """Nothing lost, nothing twice, the map exact, after one more run over what is there and 500
        records more."""
        self.write(500)
        run = replicate_once(spark, self.topology)
        assert_same(run.lake, self.east, self.west, self.names, self.written)


def new_scene(folder: Path, clusters: ClusterPair, landing: Mapping[str, int]) -> Scene:
    """A flow of its own, with records that wait."""
    topic = f"crash-{uuid.uuid4().hex[:8]}"
    topology = write_topology(folder, clusters.east, clusters.west, {"topics": [topic]}, landing)
    create_topic(clusters.east, topic, PARTITIONS)
    scene = Scene(folder, topology, topic, clusters.east, clusters.west)
    scene.write(2_000)
    return scene


@pytest.fixture(scope="module")
def made(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    scene = new_scene(tmp_path_factory.mktemp("crash"), clusters, LONG_WAY)
    replicate_once(spark, scene.topology)
    return scene


@pytest.fixture
def scene(made: Scene) -> Scene:
    """The flow, all of it replicated by the test before, and more records waiting."""
    made.write(WAITING)
    return made


@pytest.mark.law(
    "exactly once", "exact map", lane=("native", "python"), session=("with", "without")
)
@pytest.mark.parametrize(
    "points",
    [
        pytest.param(WRITTEN, id="written"),
        pytest.param(
            IN_A_TASK,
            id="in a task",
            marks=pytest.mark.wide("test_driver_killed_at_point_after_point"),
        ),
        pytest.param(ALL, id="all", marks=SLOW),
    ],
)
def test_driver_killed_at_point_after_point(
    spark: SparkSession,
    scene: Scene,
    clusters: ClusterPair,
    tmp_path: Path,
    points: Sequence[Sequence[tuple[str, str]]],
) -> None:
    """Two flows side by side, a new one that goes the short way. Each run dies at another point,
    over what the one before left: a crash in the middle of a recovery is one too. By librdkafka's C
    interface goes on what died with Python's objects, and, where all points are gone through, the
    other way round."""
    short = new_scene(tmp_path / "new", clusters, SHORT_WAY)
    with ThreadPoolExecutor() as side_by_side:
        deaths = [
            side_by_side.submit(_die_in_turn, one, at, run)
            for one, at, run in zip((scene, short), points, (_with_spark, _ended), strict=True)
        ]
        for death in deaths:
            death.result()
    for one in (scene, short):
        one.recovers(spark)


def _with_spark(topology: Path, *words: str, **environment: str) -> int:
    return finish(start_command(topology, *words, **environment))


def _ended(topology: Path, *words: str, **environment: str) -> int:
    """How a run over few records ends: natively it needs no Spark."""
    run = _with_spark if environment[SWITCH] else exit_code
    return run(topology, *words, **environment)


def _die_in_turn(scene: Scene, points: Sequence[tuple[str, str]], run: Callable[..., int]) -> None:
    for point, way in points:
        once = scene.folder / f"once-{uuid.uuid4().hex}"
        environment = {
            "MIRRORLAKE_CRASH": f"{point}:driver",
            "MIRRORLAKE_CRASH_ONCE": str(once),
            SWITCH: way,
        }
        code = run(scene.topology, "run", "--once", **environment)
        log = (scene.folder / "run.log").read_text(encoding="utf-8")
        assert once.exists(), f"nobody came to {point}\n{log}"
        assert code == -9, f"{point}\n{log}"
        scene.write(1_500)


@pytest.mark.wide(
    "test_driver_killed_at_point_after_point",
    "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
)
@pytest.mark.law("exactly once", "exact map")
@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(KILLS_IN_WORKERS, id="some"),
        pytest.param(MORE_KILLS_IN_WORKERS, id="more", marks=SLOW),
    ],
)
def test_worker_killed_in_a_task(
    spark: SparkSession, scene: Scene, tmp_path: Path, kills: Sequence[tuple[str, str, str]]
) -> None:
    """The flow tries the batch again: all is there without anybody's help. Native code that goes
    wrong ends a process by SIGSEGV."""
    environment = spark.sparkContext.environment
    for point, how, way in kills:
        once = tmp_path / f"{point}-{how}"
        asked = {
            "MIRRORLAKE_CRASH": point,
            "MIRRORLAKE_CRASH_ONCE": str(once),
            "MIRRORLAKE_CRASH_SIGNAL": how,
        }
        environment.update({**asked, SWITCH: way})
        try:
            replicate_once(spark, scene.topology)
        finally:
            for name in (*asked, SWITCH):
                del environment[name]
        assert once.exists(), f"nobody came to {point}"
        scene.write(1_500)
    scene.recovers(spark)


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_tables_and_target_are_enough_to_go_on",
    "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
)
@pytest.mark.law("stage is the truth")
def test_landed_but_not_committed_by_the_stream(
    spark: SparkSession, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver died behind the commit in `records` and before the one in the streaming
    checkpoint."""
    with monkeypatch.context() as patch:
        patch.setattr("mirrorlake.landing.worker.forget_query", lambda *_: None)
        replicate_once(spark, scene.topology)
    commits = sorted(
        (
            path
            for path in scene.folder.glob("lake/_checkpoints/land/east/*/commits/*")
            if path.name.isdigit()
        ),
        key=lambda path: int(path.name),
    )
    assert len(commits) >= 2
    commits[-1].unlink()
    (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    run = replicate_once(spark, scene.topology)
    assert_same(run.lake, scene.east, scene.west, scene.names, scene.written)
    scene.recovers(spark)


@pytest.mark.wide(
    "simulation/test_found.py::test_a_lake_that_is_older_than_the_target_gets_its_map_back"
)
@pytest.mark.law("exact map", "progress is offsets")
@pytest.mark.usefixtures("lane")
@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_map_rows_that_were_lost_for_many_batches_are_rebuilt(
    spark: SparkSession, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of several batches reaches the map: all are rebuilt from the target's metadata and the
    stage."""
    with monkeypatch.context() as patch:
        patch.setattr("mirrorlake.produce.map_writer.MapWriter._append_all", lambda _self: None)
        lost = replicate_once(spark, scene.topology)
        assert len(lost.reports) >= 1
    (mapped,) = now_of(lost.lake).rows("SELECT sum(record_count) AS n FROM offset_map")
    assert mapped["n"] == scene.written - WAITING
    assert record_count(scene.west, scene.names[scene.topic]) == scene.written
    scene.recovers(spark)


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_tables_and_target_are_enough_to_go_on"
)
@pytest.mark.law("stage is the truth")
@pytest.mark.usefixtures("lane")
@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_deleted_checkpoints_are_rebuilt_from_the_tables(spark: SparkSession, scene: Scene) -> None:
    shutil.rmtree(scene.folder / "lake" / "_checkpoints")
    scene.recovers(spark)


class Feeder(Thread):
    """Writes numbered records until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, start: int, rate: int) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._topic, self._rate = topic, rate
        self.number = start
        self._stop_asked = Event()

    def run(self) -> None:
        while not self._stop_asked.wait(0.05):
            for _ in range(self._rate // 20):
                send(
                    self._producer,
                    self._topic,
                    NewRecord(b"%d" % self.number, None, self.number % PARTITIONS),
                )
                self.number += 1
        self._producer.flush(30)

    def end(self) -> None:
        self._stop_asked.set()
        self.join(60)

    def __enter__(self) -> "Feeder":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@pytest.mark.law("stage first")
@pytest.mark.usefixtures("lane")
@pytest.mark.parametrize("lane", LANES, indirect=True)
def test_stage_first(spark: SparkSession, scene: Scene) -> None:
    """DESIGN.md, "Stage first": what a read_committed consumer sees at the target was in `records`
    by then."""
    stage = DeltaLog(place_of(scene.folder / "lake" / "records"))
    version, seen, enough = 0, [], scene.written + 3_000
    with (
        replicating(spark, scene.topology),
        Feeder(scene.east, scene.topic, scene.written, 1_000) as feeder,
    ):
        for messages in _watch(scene.west, scene.names[scene.topic]):
            while stage.commit(version + 1) is not None:
                version += 1
            seen.append((version, messages))
            # A start that took long has left a backlog: it is watched until batches come one by
            # one.
            if sum(len(keys) for _, keys in seen) >= enough and len({upto for upto, _ in seen}) > 5:
                break
    scene.written = feeder.number
    committed: dict[tuple[int, bytes], int] = {}
    for number in range(version + 1):
        found = stage.commit(number)
        for path in found.added if found is not None else ():
            rows = pq.read_table(stage.table / path, columns=["partition", "value"]).to_pydict()
            for key in zip(rows["partition"], rows["value"], strict=True):
                committed[key] = number
    checked = 0
    for upto, messages in seen:
        for key in messages:
            assert key in committed and committed[key] <= upto, (
                f"{key} was at the target before it was staged"
            )
            checked += 1
    assert checked >= enough
    assert len({upto for upto, _ in seen}) > 5, "it was not watched while batches were landed"


def _watch(bootstrap: str, topic: str) -> Iterator[list[tuple[int, bytes]]]:
    """What a read_committed consumer sees of a topic, poll by poll, until nobody asks any more."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "watch",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(partition_count(bootstrap, topic))])
    end, seen = time.monotonic() + 240, 0
    try:
        while True:
            assert time.monotonic() < end, f"only {seen} records arrived\n{stacks()}"
            messages = consumer.consume(1_000, timeout=0.05)
            seen += len(messages)
            if messages:
                yield [
                    (message.partition(), message.value())
                    for message in messages
                    if message.error() is None
                ]
    finally:
        consumer.close()


@pytest.mark.slow
def test_brokers_killed_under_load(
    spark: SparkSession, scene: Scene, clusters: ClusterPair
) -> None:
    """The target's broker dies while transactions are open, then the source's while records are
    read."""
    if clusters.embedded is None:
        pytest.skip("the clusters are not ours to kill")
    with (
        Feeder(scene.east, scene.topic, scene.written, 1_000) as feeder,
        replicating(spark, scene.topology) as run,
    ):
        for alias in ("west", "east"):
            done = len(run.reports)
            _until(lambda done=done: len(run.reports) >= done + 3)
            clusters.embedded[alias].kill()
            time.sleep(2)  # the time that it is away, under load
            clusters.embedded[alias].start_broker()
        done = len(run.reports)
        _until(lambda: len(run.reports) >= done + 3)
        feeder.end()
    scene.written = feeder.number
    scene.recovers(spark)


def stacks() -> str:
    """Where every thread of this process is: what a run that does not go on is waiting for."""
    names = {thread.ident: thread.name for thread in enumerate_threads()}
    return "\n".join(
        f"--- {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame, 6))}"
        for ident, frame in sys._current_frames().items()
    )


def _until(fact, seconds: float = 240) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end, f"it does not go on\n{stacks()}"
        time.sleep(0.1)
