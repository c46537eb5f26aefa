"""The fakes that users get: what the page shows works, they follow the real ones, and say what they
cannot do."""

import inspect
import re
from pathlib import Path

import pyarrow as pa
import pytest

from mirrorlake.errors import ClusterUnreachable, Fenced, LakeError, TargetRefused
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.lake import Lake
from mirrorlake.testing import MemoryCluster, MemoryLake

PAGE = Path(__file__).parents[3] / "docs" / "library.md"
FILE = """\
clusters: {east: {bootstrap_servers: "127.0.0.1:1"}, west: {bootstrap_servers: "127.0.0.1:2"}}
lake: {path: ./lake}
flows: {east->west: {topics: ["orders.*"]}}
"""


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirrorlake.yml").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text(encoding="utf-8").split("## Testing")[1]
    exec(re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0], {})


def test_they_have_no_method_that_the_real_ones_lack() -> None:
    """mypy compares the signatures, since they are subclasses."""
    own = {"make", "delete"}
    for fake, real in ((MemoryCluster, ClusterAdmin), (MemoryLake, Lake)):
        names = {
            name for name, item in vars(fake).items() if inspect.isfunction(item) and name[0] != "_"
        }
        assert {name for name in names if not hasattr(real, name)} == (
            own if fake is MemoryCluster else set()
        )


def test_a_topic_that_is_made_again_is_another_one() -> None:
    cluster = MemoryCluster("west", {"t": [5, 0]})
    (before, missing) = cluster.identities(["t", "u"])
    assert before["t"].partitions == 2 and missing == {"u"}
    assert cluster.make("t", 0) != before["t"].topic_id
    cluster.delete("t")
    assert cluster.identities(["t"]) == ({}, {"t"}) and not cluster.topics()


def test_topics_are_made_and_grown_but_for_those_that_are_refused() -> None:
    cluster = MemoryCluster("west", {"there": [1]})
    refusal = TargetRefused("no", topic="no", reason="POLICY_VIOLATION")
    cluster.refuses["no"] = refusal
    wanted = [TopicInfo(name, 2, 1) for name in ("there", "new", "no")]
    assert cluster.try_create_topics(wanted) == [refusal]
    with pytest.raises(TargetRefused):
        cluster.create_topics(wanted)
    assert cluster.ends == {"there": [1], "new": [0, 0]} and [
        topic.name for topic in cluster.made
    ] == ["new"]
    cluster.add_partitions("there", 3)
    assert cluster.end_offsets([("there", 0), ("there", 2)]) == {("there", 0): 1, ("there", 2): 0}
    with pytest.raises(TargetRefused):
        cluster.add_partitions("no", 3)


def test_a_cluster_that_does_not_answer_and_a_leader_that_does_not() -> None:
    cluster = MemoryCluster("east", {"t": [5, 6]})
    cluster.silent.add(("t", 1))
    cluster.starts["t", 0] = 2
    keys = [("t", 0), ("t", 1), ("gone", 0)]
    assert cluster.end_offsets(keys, skip_silent=True) == {("t", 0): 5} and cluster.start_offsets(
        keys, skip_silent=True
    ) == {("t", 0): 2}
    cluster.refusal = ClusterUnreachable("no answer", alias="east")
    with pytest.raises(ClusterUnreachable):
        cluster.cluster_id()


def test_what_a_cluster_in_memory_cannot_do_is_said() -> None:
    with pytest.raises(NotImplementedError, match="cluster east is one in memory"):
        MemoryCluster("east").client  # noqa: B018


def test_a_lake_keeps_rows_and_answers_what_it_was_given() -> None:
    lake = MemoryLake({"known_clusters": [{"alias": "east"}]})
    rows = pa.table({"n": [1, 2]})
    for version in (1, 1, 2):
        lake.append("positions", rows, "flow", version)
    with pytest.raises(Fenced):
        lake.append("positions", rows, "flow", 0)
    assert lake.appended["positions"] == [{"n": 1}, {"n": 2}] * 2, (
        "of an application each version once"
    )
    assert [row["alias"] for row in lake.query_rows("known_clusters")] == ["east"]
    assert lake.asked == {"known_clusters": 1}
    with pytest.raises(LakeError, match="no answer to query newest_samples"):
        lake.query_rows("newest_samples", flow="a->b", since_ms=0)
