"""A source whose log went back."""

import struct

from mirrorlake.devtools.local.cluster import EmbeddedCluster


def rewind(cluster: EmbeddedCluster, partition: str, offset: int) -> None:
    """What a restored disk does: the log ends at an offset; its indexes and the mark of an orderly
    end are gone."""
    cluster.stop_broker()
    (segment,) = cluster.directory.rglob(f"{partition}/*.log")
    data = segment.read_bytes()
    at = 0
    while struct.unpack(">q", data[at : at + 8])[0] < offset:
        at += 12 + struct.unpack(">i", data[at + 8 : at + 12])[0]
    with segment.open("r+b") as file:
        file.truncate(at)
    for pattern in ("*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint"):
        for file in segment.parent.glob(pattern):
            file.unlink()
    (segment.parent.parent / ".kafka_cleanshutdown").unlink(missing_ok=True)
    cluster.start_broker()
