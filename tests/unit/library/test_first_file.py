"""The file that `mirrorlake init` writes: what is in it, and what both clusters have to answer."""

from pathlib import Path

import pytest
import yaml

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import AuthenticationFailed, ClusterUnreachable, InputError, TopologyError
from mirrorlake.kafka.connections import Connections
from mirrorlake.library.first_file import End, FirstFile, first_file, tried
from mirrorlake.testing import MemoryCluster

EAST, WEST = End("east", "a:1"), End("west", "b:1,b:2")


def clusters() -> dict[str, MemoryCluster]:
    topics = {"orders": [3], "orders-eu": [1], "payments": [0]}
    return {"east": MemoryCluster("east", topics), "west": MemoryCluster("west")}


def asked(file: FirstFile, there: dict[str, MemoryCluster]) -> FirstFile:
    return tried(file, lambda topology: Connections(topology, there))


def test_the_file_is_one_that_loads(tmp_path: Path) -> None:
    path = tmp_path / "mirrorlake.yml"
    path.write_text(first_file(EAST, WEST, "orders.*,x").text, encoding="utf-8")
    topology = load_topology(path)
    assert topology.flow("east->west").settings.topics == ("orders.*", "x")
    assert {name: one.bootstrap_servers for name, one in topology.clusters.items()} == {
        "east": "a:1",
        "west": "b:1,b:2",
    }
    assert yaml.safe_load(path.read_text(encoding="utf-8")).keys() == {"clusters", "lake", "flows"}


def test_both_clusters_are_asked_and_nothing_is_made() -> None:
    there = clusters()
    file = asked(first_file(EAST, WEST, "orders.*"), there)
    assert file.topics == ("orders", "orders-eu")
    assert file.cluster_ids == {"east": "id-of-east", "west": "id-of-west"}
    assert not there["west"].made


@pytest.mark.parametrize("silent", ["east", "west"])
@pytest.mark.parametrize("kind", [ClusterUnreachable, AuthenticationFailed])
def test_a_cluster_that_does_not_answer_ends_it(
    silent: str, kind: type[ClusterUnreachable | AuthenticationFailed]
) -> None:
    there = clusters()
    there[silent].refusal = kind(f"cluster {silent} is silent", alias=silent)
    with pytest.raises(kind, match=f"cluster {silent} is silent; for a cluster that wants TLS"):
        asked(first_file(EAST, WEST, ".*"), there)


def test_one_cluster_at_two_addresses_is_no_flow() -> None:
    there = clusters()
    there["west"] = there["east"]
    with pytest.raises(InputError, match="both addresses lead to cluster id-of-east"):
        asked(first_file(EAST, WEST, ".*"), there)


def test_two_names_are_needed() -> None:
    with pytest.raises(InputError, match="both clusters are called east; give each a name"):
        first_file(EAST, End("east", "b:1"), ".*")


@pytest.mark.parametrize(
    ("end", "topics", "sentence"),
    [
        (EAST, "(", "topics holds the invalid regular expression"),
        (End("a b", "a:1"), ".*", "is not an alias that a topic name can hold"),
        (End("east", ""), ".*", "bootstrap_servers"),
    ],
)
def test_what_cannot_run_is_not_written(end: End, topics: str, sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        first_file(end, WEST, topics)


def test_the_settings_are_the_defaults() -> None:
    settings = first_file(EAST, WEST, ".*").topology.flow("east->west").settings
    content = {"clusters": {"a": {"bootstrap_servers": "a"}, "b": {"bootstrap_servers": "b"}}}
    bare = Topology.model_validate({**content, "lake": {"path": "."}, "flows": {"a->b": {}}})
    assert settings == bare.flow("a->b").settings
