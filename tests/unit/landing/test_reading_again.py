"""What is read again is of the topic that was staged, also at the moment when it is committed."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.landing import read_again as module
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import ago, commit, no_session, opened, staged, write_file


@pytest.mark.parametrize("again", [False, True], ids=["as it was", "made again meanwhile"])
def test_a_topic_that_is_made_again_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    file = write_file(tmp_path)
    lake, _ = opened(no_session, file)
    topology = load_topology(file)
    east = MemoryCluster("east", {"orders": [50]})
    topic_id = east.topic_ids(["orders"])["orders"]
    common = {"source_cluster": "east", "topic": "orders"}
    begun = {**common, "generation": 0, "topic_id": topic_id, "started_at": ago(9)}
    lake.append("generations", rows_of("generations", [begun]))
    removal = {**common, "partition": 0, "generation": 0, "first_offset": 0, "below": 30}
    lake.append("removals", rows_of("removals", [{**removal, "removed_at": ago(9)}]))
    commit(lake, "records", staged(range(30, 50)))
    committed: list[dict[str, Any]] = []

    def land_again(*_: object, check: Any, ends: dict[str, int], **_more: object) -> None:
        if again:
            east.make("orders", 50)
        check()
        committed.append(ends)

    monkeypatch.setattr(module, "land_again", land_again)
    deployment = Deployment.opened(lake, Connections(topology, {"east": east}))
    place = {"topic": "orders", "partition": 0, "generation": 0}
    incident = {**place, "first_offset": 10, "last_offset": 29, "at": ago(5)}
    if again:
        with pytest.raises(InputError, match="was made again"):
            module.read_again(deployment, "east", incident)
        assert committed == []
    else:
        assert module.read_again(deployment, "east", incident) == 10
        assert committed == [{("orders", 0): 30}]
