"""MirrorMaker 2's released Java client, asked what it sees on a cluster."""

import json
import subprocess
from pathlib import Path
from typing import Any

from mirrorlake.spark.jars import KAFKA_VERSION, JarSet, jars_of
from mirrorlake.spark.java import find_java

_PROBE = Path(__file__).parent / "java" / "MirrorClientProbe.java"
_CLIENT = JarSet(
    "mirror-client",
    "MirrorMaker 2's client",
    20,
    (f"org.apache.kafka:connect-mirror-client:{KAFKA_VERSION}", "org.slf4j:slf4j-nop:1.7.36"),
)


def client_jars() -> str:
    """Class path of MirrorMaker 2's client, and so of Kafka's."""
    return str(jars_of(_CLIENT)[0].parent / "*")


def ask_mirror_client(
    bootstrap: str, source: str, *groups: str, separator: str = ".", internal_separator: bool = True
) -> dict[str, Any]:
    """What `MirrorClient` and `RemoteClusterUtils` of the released jars say; positions are `topic/partition` to
    [offset, metadata]."""
    command = [str(find_java()), "-cp", client_jars(), str(_PROBE)]
    arguments = [bootstrap, separator, str(internal_separator).lower(), source, *groups]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
