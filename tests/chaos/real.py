"""Chaos on real clusters: processes are killed with -9 while a flow works, and at the end
everything is compared.

    python -m tests.chaos.real --kills 300 --seed 7

Two clusters, a producer that writes transactions and records of odd sizes, and `mirrorlake run`
between them. One after another the driver, a Python worker or one of the brokers is killed, each at
a random moment after records were seen to arrive since the last kill; or the lake's disk is full
for a while (tests/support/disks.py), or the driver is suspended for a minute. In between the
topology file is edited, topics and partitions are added, and groups read on
(tests/chaos/groups.py). At the end every record, every row of the map and every position is
compared. The seed decides on what is done; when exactly it hits is the machine's.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import psutil
import yaml
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.errors import MirrorlakeError
from mirrorlake.spark.session import SHORT_VARIABLE, local_session
from tests.chaos.groups import Groups
from tests.support.disks import Disk
from tests.support.kafka import create_topic
from tests.support.replication import (
    assert_topic_same,
    both_sides,
    finish,
    lake_of,
    start_command,
    start_run,
    write_topology,
)

#: Each kind of kill, and how often of a hundred: a driver takes half a minute to come back, a
#: worker two seconds.
KINDS = {
    "driver": 10,
    "worker": 36,
    "target broker": 19,
    "source broker": 19,
    "full disk": 10,
    "suspended driver": 6,
}
#: How much the lake's disk holds: more than a run of hundreds of kills stages, bytes.
ROOM = 4 << 30
#: How long the disk is full, at least and at most, and how long a driver is suspended, seconds.
FULL_SECONDS, SUSPENDED_SECONDS = (2.0, 30.0), 60.0
#: How often of a hundred kills something of the topology or of the source changes in between.
CHANGES = 20
#: How long nothing may arrive before it counts as stuck, seconds.
STUCK_SECONDS = 180.0
FIRST_TOPICS, MOST_TOPICS, MOST_PARTITIONS = 3, 8, 6
#: What comes in a second is a small batch, and goes the short way; what has waited behind a kill
#: goes the long one.
LANDING = {"max_records_per_batch": 5_000, "small_batch_records": 1_000}
#: Control has many turns between two kills.
OFTEN = {
    "refresh_topics_interval_seconds": 2,
    "emit_checkpoints_enabled": True,
    "emit_checkpoints_interval_seconds": 2,
    "sync_group_offsets_interval_seconds": 2,
}
QUIET_CLIENT = {"log_level": 0, "error_cb": lambda _error: None, "reconnect.backoff.max.ms": 500}


def say(text: str) -> None:
    """One line, at once: a run of an hour is watched through a file."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


class Load(Thread):
    """Writes to the source until it is stopped, in transactions, through everything that happens to
    the broker."""

    def __init__(self, bootstrap: str, partitions: dict[str, int], seed: int) -> None:
        super().__init__(name="load", daemon=True)
        self.partitions = partitions
        self.transactions: Counter[str] = Counter()
        self._servers = bootstrap
        self._random = random.Random(seed)
        self._ended = Event()
        self._number = 0

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                self._write(self._new_producer())
            except KafkaException:
                self.transactions["unknown"] += (
                    1  # committed or not: what counts is what the source has at the end
                )
                self._ended.wait(0.5)

    def stop(self) -> None:
        """End with the transaction that is being written."""
        self._ended.set()
        self.join(120)

    def _new_producer(self) -> Producer:
        settings = {
            "bootstrap.servers": self._servers,
            "transactional.id": "load",
            "linger.ms": 5,
            **QUIET_CLIENT,
        }
        producer = Producer({**settings, "transaction.timeout.ms": 20_000})
        producer.init_transactions(30)
        return producer

    def _write(self, producer: Producer) -> None:
        while not self._ended.wait(self._random.uniform(0.05, 0.5)):
            producer.begin_transaction()
            topic = self._random.choice(list(self.partitions))
            for _ in range(self._random.choice((1, 3, 20, 100, 200))):
                self._send(producer, topic)
            producer.flush(20)
            if self._random.random() < 0.15:
                producer.abort_transaction(20)
                self.transactions["aborted"] += 1
            else:
                producer.commit_transaction(20)
                self.transactions["committed"] += 1

    def _send(self, producer: Producer, topic: str) -> None:
        chance, self._number = self._random.random(), self._number + 1
        size = (
            self._random.randrange(50_000, 300_000)
            if chance < 0.001
            else self._random.randrange(0, 1_200)
        )
        value = None if chance > 0.95 else b"%d|" % self._number + self._random.randbytes(size)
        key = None if chance < 0.3 else b"k%d" % (self._number % 97)
        headers: list[tuple[str, bytes | None]] = (
            [] if chance < 0.8 else [("n", b"%d" % self._number), ("none", None)]
        )
        partition = self._random.randrange(self.partitions[topic])
        producer.produce(topic, value, key, partition, headers=headers)
        producer.poll(0)


@dataclass
class Chaos:
    """The clusters, the load, the driver's process, and what went wrong so far."""

    folder: Path
    clusters: dict[str, EmbeddedCluster]
    chance: random.Random
    disk: Disk | None = None
    processes: int = 1
    partitions: dict[str, int] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    #: For how long no record arrived from each kill on, seconds, by what was killed.
    silences: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    changes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.east, self.west = (self.clusters[name].bootstrap_servers for name in ("east", "west"))
        self._target = AdminClient({"bootstrap.servers": self.west, **QUIET_CLIENT})
        self._left: list[psutil.Process] = []
        self._away: list[int] = []
        self.killed_at = 0.0
        for number in range(FIRST_TOPICS):
            self.new_topic(1 + number)
        self.groups = Groups(self.east, self.west, self.partitions, QUIET_CLIENT)
        self.topology = self.edit([])
        self.drivers = [start_run(self.topology) for _ in range(self.processes)]

    def edit(self, paused: list[str]) -> Path:
        """Write the topology file, with these topics paused."""
        flow = {"topics": ["load-.*"], "paused": paused, **OFTEN}
        drawn = write_topology(self.folder / "drawn", self.east, self.west, flow, LANDING)
        if self.processes > 1:
            document = yaml.safe_load(drawn.read_text(encoding="utf-8"))
            drawn.write_text(yaml.safe_dump({**document, "availability": "kafka"}))
        return drawn.replace(self.folder / drawn.name)  # whole: a driver may read it just now

    def new_topic(self, partitions: int) -> None:
        """Add a topic to the load."""
        name = f"load-{len(self.partitions)}"
        create_topic(self.east, name, partitions)
        self.partitions[name] = partitions

    def arrived(self) -> int:
        """How far the target's topics reach: the sum of their ends, without what is in open
        transactions."""
        there = self._target.list_topics(timeout=10).topics
        places = [
            TopicPartition(name, partition)
            for name, topic in there.items()
            if name.startswith("east.load-")
            for partition in topic.partitions
        ]
        asked = {place: OffsetSpec.latest() for place in places}
        if not asked:
            return 0
        committed = IsolationLevel.READ_COMMITTED
        answers = self._target.list_offsets(asked, isolation_level=committed, request_timeout=10)
        return sum(answer.result().offset for answer in answers.values())

    def wait_for_progress(self) -> float:
        """Wait until records arrive that were not there; return how long that took, seconds. Notes
        it when stuck."""
        begun, base = time.monotonic(), -1
        while time.monotonic() - begun < STUCK_SECONDS:
            self._see_to_the_drivers()
            try:
                now = self.arrived()
            except KafkaException:
                now = -1
            if base < 0:
                base = now
            elif now > base:
                return time.monotonic() - begun
            time.sleep(0.2)
        self.note(
            f"stuck: nothing arrived for {STUCK_SECONDS:.0f} s, after {sum(self.kills.values())} "
            "kills"
        )
        self._kill_the_driver()
        self.start_again()
        return STUCK_SECONDS

    def _see_to_the_drivers(self) -> None:
        for number, driver in enumerate(self.drivers):
            code = driver.poll()
            if code is not None and number not in self._away:
                self.note(f"the driver ended by itself, exit code {code}: {self.log_tail()}")
                self.drivers[number] = start_run(self.topology)

    def note(self, text: str) -> None:
        """Something that must not be."""
        self.wrong.append(text)
        say(f"WRONG: {text}")

    def log_tail(self) -> str:
        """The end of what the driver said."""
        return (self.folder / "run.log").read_text(encoding="utf-8", errors="replace")[-1_500:]

    def kill(self, kind: str) -> None:
        """Kill one process of a kind, and start it again where no other does; or take room or time
        away."""
        self.killed_at = time.monotonic()
        if kind == "full disk" and self.disk is not None:
            with self.disk.full():
                time.sleep(self.chance.uniform(*FULL_SECONDS))  # the time that it has no room
        elif kind == "suspended driver":
            self._suspend_the_driver()
        elif kind == "driver":
            self._kill_the_driver()
        elif kind == "worker":
            if not self._kill_a_worker():
                kind = "driver"  # which does on the short way what workers do
                self._kill_the_driver()
        else:
            cluster = self.clusters["west" if kind == "target broker" else "east"]
            cluster.kill()
            time.sleep(self.chance.uniform(0, 3))  # the time that it is away
            cluster.start_broker()
        self.kills[kind] += 1

    def _kill_the_driver(self) -> None:
        """The new one starts while the JVM and the workers of the old one may still be at it; where
        another one stands by, only once that has gone on."""
        number = self._working()
        driver = self.drivers[number]
        try:
            left = psutil.Process(driver.pid).children(recursive=True)
        except psutil.Error:
            left = []
        self.killed_at = time.monotonic()
        driver.kill()
        driver.wait(30)
        self._left += left
        self._away.append(number)
        if self.processes == 1:
            self.start_again()

    def start_again(self) -> None:
        """Start the drivers that were killed."""
        while self._away:
            self.drivers[self._away.pop()] = start_run(self.topology)

    def see_that_all_ended(self) -> None:
        """What a killed driver had started ends by itself."""
        left, self._left = self._left, []
        _, alive = psutil.wait_procs(left, 60)
        if alive:
            self.note(f"processes of a killed driver live on: {[one.pid for one in alive]}")

    def _working(self) -> int:
        """Which process produces, of several that stand by for each other; any, where none is known
        to for half a minute."""
        deadline = time.monotonic() + 30
        while self.processes > 1 and time.monotonic() < deadline:
            answer = subprocess.run([*self._command, "status", "--json"], capture_output=True)
            works = [
                each["pid"]
                for each in json.loads(answer.stdout or "{}").get("workers", [])
                if each["flow"] is not None and each["state"] == "works"
            ]
            for number, driver in enumerate(self.drivers):
                if driver.pid in works:
                    return number
        return self.chance.randrange(self.processes)

    @property
    def _command(self) -> list[str]:
        return [sys.executable, "-m", "mirrorlake.cli.main", "-c", str(self.topology)]

    def _suspend_the_driver(self) -> None:
        """Its JVM and workers go on meanwhile, and so do the clusters."""
        driver = self.drivers[self._working()]
        driver.send_signal(signal.SIGSTOP)
        try:
            time.sleep(SUSPENDED_SECONDS)  # the time that it is suspended
        finally:
            driver.send_signal(signal.SIGCONT)

    def _kill_a_worker(self) -> bool:
        """A worker is a child of pyspark's daemon, which has the same command line. False where
        there is none."""
        end = time.monotonic() + 5
        while time.monotonic() < end:
            self._see_to_the_drivers()
            try:
                family = [
                    one
                    for driver in self.drivers
                    for one in psutil.Process(driver.pid).children(recursive=True)
                    if _is_daemon(one)
                ]
                daemons = {one.pid for one in family}
                workers = [one for one in family if one.ppid() in daemons]
                if workers:
                    self.chance.choice(workers).kill()
                    return True
            except psutil.Error:
                continue  # one ended while it was looked at
            time.sleep(0.2)
        return False

    def change(self) -> None:
        """Change the topology file, or the source."""
        choices: dict[str, Callable[[], object]] = {
            "pause": lambda: self.edit([self.chance.choice(list(self.partitions)[1:])]),
            "resume": lambda: self.edit([]),
        }
        if self.processes == 1:  # of several one may begin to read the file just now
            choices["invalid edit"] = lambda: self.topology.write_text(
                "flows: {east->wset: {topics: [", encoding="utf-8"
            )
        if len(self.partitions) < MOST_TOPICS:
            choices["new topic"] = lambda: self.new_topic(self.chance.randint(1, 3))
        grown = [name for name, count in self.partitions.items() if count < MOST_PARTITIONS]
        if grown:
            choices["new partition"] = lambda: self._add_partition(self.chance.choice(grown))
        name = self.chance.choice(list(choices))
        choices[name]()
        self.changes[name] += 1
        if name == "invalid edit":
            time.sleep(self.chance.uniform(0, 8))
            self.edit([])  # a driver that is killed with an invalid file could not start again

    def _add_partition(self, topic: str) -> None:
        count = self.partitions[topic] + 1
        admin = AdminClient({"bootstrap.servers": self.east, **QUIET_CLIENT})
        admin.create_partitions([NewPartitions(topic, count)], request_timeout=20)[topic].result(30)
        self.partitions[topic] = count

    def close(self) -> None:
        """Let the driver take what is there, and end; then see that a last run finds nothing
        wrong."""
        self.edit([])
        self._wait_until_caught_up()
        self.groups.stop()
        for driver in self.drivers:
            driver.terminate()
        for driver in self.drivers:
            self._ends(driver, "the driver, told to stop")
        for command in ("run --once", "verify", "status"):
            self._ends(start_command(self.topology, *command.split()), command)
        self.groups.look()

    def _wait_until_caught_up(self) -> None:
        """What the last kill broke is over then: a turn that failed makes the exit code 1."""
        begun = time.monotonic()
        while time.monotonic() - begun < STUCK_SECONDS:
            self._see_to_the_drivers()
            answer = subprocess.run(
                [*self._command, "status", "--json"], capture_output=True, timeout=60
            )
            if answer.returncode in (0, 1):  # 1: records were late, as is right after kills
                (flow,) = json.loads(answer.stdout)["flows"]
                if flow["lag_records"] == 0:
                    return
        self.note(f"not caught up {STUCK_SECONDS:.0f} s after the last kill")

    def _ends(self, process: "subprocess.Popen[bytes]", what: str) -> None:
        try:
            code = finish(process, 300)
        except subprocess.TimeoutExpired:
            self.note(f"{what}: no end after 300 s: {self.log_tail()}")
            return
        if code != 0:
            self.note(f"{what}: exit code {code}: {self.log_tail()}")

    def compare(self) -> int:
        """Compare topic by topic, so that only one is in memory; return how many records there
        are."""
        os.environ.setdefault(SHORT_VARIABLE, "1")
        warehouse = {"spark.sql.warehouse.dir": str(self.folder / "warehouse")}
        spark = local_session(cores="2", settings=warehouse)
        total = 0
        try:
            lake = lake_of(spark, self.topology)
            for row in lake.reader.table_rows("flow_status"):
                say(
                    f"{row['short_batches']} batches went the short way, {row['long_batches']} the "
                    "long one"
                )
                if not (row["short_batches"] and row["long_batches"]):
                    self.note("one of the ways was never gone")
            for topic in self.partitions:
                try:
                    sides = both_sides(lake, self.east, self.west, {topic: f"east.{topic}"})
                    total += sum(map(len, sides.source[topic]))
                    assert_topic_same(sides, topic)
                    for what in self.groups.wrong(topic, sides.mapped):
                        self.note(what)
                except AssertionError as error:
                    self.note(f"{topic}: {str(error).splitlines()[0]}")
        finally:
            spark.stop()
        return total


def _is_daemon(process: psutil.Process) -> bool:
    try:
        return not {"pyspark.daemon", "mirrorlake.spark.worker_daemon"}.isdisjoint(
            process.cmdline()
        )
    except psutil.Error:
        return False


def _kill_by_kill(chaos: Chaos, kills: int, only: str | None) -> None:
    """Ctrl-C, or SIGTERM, ends the kills, and not the comparison."""
    enough = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: enough.set())
    kinds = [only] if only else [kind for kind in KINDS if kind != "full disk" or chaos.disk]
    weights = [KINDS[kind] for kind in kinds]
    chaos.wait_for_progress()
    for number in range(1, kills + 1):
        if enough.is_set():
            break
        if chaos.chance.randrange(100) < CHANGES:
            chaos.change()
        time.sleep(chaos.chance.uniform(0, 1.0))
        kind = chaos.chance.choices(kinds, weights)[0]
        chaos.kill(kind)
        chaos.wait_for_progress()
        silence = time.monotonic() - chaos.killed_at
        chaos.silences[kind].append(round(silence, 1))
        chaos.start_again()
        chaos.see_that_all_ended()
        say(f"{number}/{kills}: the {kind}; records arrived {silence:.1f} s later")


def main(kills: int, seed: int, processes: int = 1, only: str | None = None) -> int:
    """Kill so often, compare, say what there was. 0 when nothing was wrong, else 1, and the folder
    is kept, and what is mounted there. Several `processes` stand by for each other; `only` kills of
    this kind."""
    if only is not None and only not in KINDS:
        raise SystemExit(f"no kind of kill is called {only}; there are {', '.join(KINDS)}")
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="mirrorlake-chaos-"))
    say(f"seed {seed}, {kills} kills, in {folder}")
    try:
        disk = Disk.mounted(folder / "flow" / "lake", ROOM)
    except OSError as error:
        disk = None
        say(f"{error} (that takes root, on Linux): the lake's disk is never full")
    clusters = start_clusters(["east", "west"], folder)
    try:
        chaos = Chaos(folder / "flow", clusters, random.Random(seed), disk, processes)
        load = Load(chaos.east, chaos.partitions, seed)
        load.start()
        chaos.groups.start()
        try:
            try:
                _kill_by_kill(chaos, kills, only)
            except MirrorlakeError as error:
                chaos.note(f"the kills ended early: {error.message}")
            load.stop()
            chaos.close()
        finally:
            load.stop()
            for driver in chaos.drivers:
                driver.kill()
                driver.wait()
        records = chaos.compare()
        if not records:
            chaos.note("there was nothing to compare")
    finally:
        stop_clusters(clusters)
    facts = {
        "seed": seed,
        "kills": {"all": chaos.kills.total(), **chaos.kills},
        "seconds until records arrived": dict(chaos.silences),
        "changes": dict(chaos.changes),
        "topics": chaos.partitions,
        "transactions": dict(load.transactions),
        "records": records,
        "positions": {
            "committed": sum(map(len, chaos.groups.committed.values())),
            "seen at the target": sum(map(len, chaos.groups.seen.values())),
        },
        "minutes": round((time.monotonic() - begun) / 60, 1),
        "wrong": chaos.wrong,
    }
    say(json.dumps(facts, indent=2))
    if disk is not None and not chaos.wrong:
        disk.unmount()
    return 1 if chaos.wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    sys.exit(main(options.kills, options.seed, options.processes, options.only))
