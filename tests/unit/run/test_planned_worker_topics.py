"""`plan` names the topics by which processes would stand by for each other, where they do."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.naming.worker_groups import TOPIC
from mirrorlake.run import plan
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, write_file


@pytest.mark.parametrize(("availability", "missing"), [("kafka", ["east"]), ("lease", [])])
def test_what_would_be_made(tmp_path: Path, availability: str, missing: list[str]) -> None:
    topology = load_topology(write_file(tmp_path, availability=availability))
    clusters: Any = {"east": MemoryCluster("east"), "west": MemoryCluster("west", {TOPIC: [0]})}
    topics = plan._worker_topics(Connections(topology, clusters), topology.flow(FLOW))
    assert [(topic["cluster"], topic["topic"], topic["partitions"]) for topic in topics] == [
        (alias, TOPIC, 1) for alias in missing
    ]
