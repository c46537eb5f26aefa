"""MirrorMaker 2's released Java classes, asked what they see: its client, and its reader of offset
syncs."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mirrorlake.spark.jars import KAFKA_VERSION, JarSet, jars_of, mirror_jars
from mirrorlake.spark.java import find_java

_JAVA = Path(__file__).parent / "java"
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
    """What `MirrorClient` and `RemoteClusterUtils` of the released jars say; positions are
    `topic/partition` to [offset, metadata]."""
    arguments = [bootstrap, separator, str(internal_separator).lower(), source, *groups]
    found: dict[str, Any] = _told("MirrorClientProbe", client_jars(), *arguments)
    return found


def translated_by_syncs(
    location: str,
    source: tuple[str, str],
    target: tuple[str, str],
    topic: str,
    partition: int,
    offsets: Iterable[int],
) -> list[int]:
    """Where MirrorMaker 2 would move groups that stand at source offsets, by the offset syncs that
    lie at a `location` (source or target); -1 where it cannot tell. `source` and `target` are
    aliases and addresses."""
    arguments = [location, *source, *target, topic, str(partition), *map(str, offsets)]
    found: list[int] = _told("OffsetSyncProbe", str(mirror_jars()[0].parent / "*"), *arguments)
    return found


def _told(probe: str, jars: str, *arguments: str) -> Any:
    """What a probe prints last, as a document: what is logged may come before it."""
    command = [str(find_java()), "-cp", jars, str(_JAVA / f"{probe}.java"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
