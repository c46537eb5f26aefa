"""A Kafka broker of before KRaft, with its ZooKeeper, as processes of this one."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from mirrorlake.devtools.local.broker import Broker, settings_of
from mirrorlake.devtools.local.cluster import sees
from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import JvmProcess, start_guarded
from mirrorlake.spark.jars import kafka_jars
from mirrorlake.spark.java import find_java
from tests.support import control
from tests.support.waiting import until

#: The authorizer of before KRaft, for the rights that `tests.support.control.AUTHORIZER` gives.
AUTHORIZER = {
    **control.AUTHORIZER,
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
}
_OF_KRAFT = ("process.roles", "node.id", "controller.quorum.voters", "controller.listener.names")


@contextmanager
def zookeeper_broker(directory: Path, version: str, properties: Mapping[str, str]) -> Iterator[str]:
    """The address of a broker of a version before 4.0, for the time of the block."""
    port, controller, keeper = free_ports(3)
    directory.mkdir(parents=True, exist_ok=True)
    broker = Broker(0, port, controller, directory / "broker-0", version)
    settings = settings_of(broker, [], 1, properties)
    for key in _OF_KRAFT:
        del settings[key]
    broker.prepare(
        {
            **settings,
            "broker.id": "0",
            "zookeeper.connect": f"127.0.0.1:{keeper}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
        }
    )
    zookeeper = _zookeeper(directory / "zookeeper", keeper, version)
    try:
        broker.start("256m", detached=False)
        admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        until(lambda: sees(admin, 1), seconds=60)
        yield broker.address
    finally:
        for process in (broker.process, zookeeper):
            if process is not None:
                process.signal(signal.SIGKILL)
                process.wait(10)


def _zookeeper(directory: Path, port: int, version: str) -> JvmProcess:
    directory.mkdir(exist_ok=True)
    jars = str(kafka_jars(version=version)[0].parent / "*")
    command = [str(find_java()), "-Xmx128m", "-XX:+UseSerialGC", "-cp", jars]
    command += ["-Dzookeeper.admin.enableServer=false"]
    command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(port), str(directory)]
    return start_guarded(command, str(directory), directory / "stdout.log")
