"""A password that is rotated while `run` is running: landing, producing and control go on with the
new one."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from mirrorlake.errors import AuthenticationFailed
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.renewal import LiveSettings
from tests.support.clusters import ClusterPair
from tests.support.guarded import USER, Guarded, guarded_cluster
from tests.support.kafka import create_topic, read_topic
from tests.support.replication import QUIET
from tests.support.topologies import ends, fill, live, texts, values
from tests.support.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    """A cluster with a door, and the folder of secrets that this process resolves from."""
    with guarded_cluster(tmp_path, "first") as found:
        monkeypatch.setenv("MIRRORLAKE_SECRETS", str(found.secrets))
        yield found


def test_a_client_that_was_refused_asks_for_its_secret_again(guarded: Guarded) -> None:
    password = "wrong"

    def read() -> dict[str, str | int | bool]:
        login = {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": password,
        }
        return {
            "bootstrap.servers": guarded.address,
            "security.protocol": "SASL_PLAINTEXT",
            **login,
        }

    admin = ClusterAdmin("north", LiveSettings(read))
    for _ in range(2):
        with pytest.raises(
            AuthenticationFailed, match="refused the credentials of principal mirror"
        ):
            admin.cluster_id()
    password = "first"
    assert admin.cluster_id()


def test_a_running_flow_goes_on_with_the_new_password(
    spark: SparkSession, clusters: ClusterPair, guarded: Guarded, tmp_path: Path
) -> None:
    there, back = (f"s{uuid.uuid4().hex[:6]}-{name}" for name in ("there", "back"))
    create_topic(clusters.east, there)
    create_topic(guarded.open, back)
    path = tmp_path / "mirrorlake.yml"
    document = {
        "clusters": {"east": {"bootstrap_servers": clusters.east}, "north": guarded.entry()},
        "lake": {"path": "./lake"},
        "defaults": {"refresh_topics_interval_seconds": 2, **QUIET},
        "flows": {"east->north": {"topics": [there]}, "north->east": {"topics": [back]}},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")

    def arrived(count: int) -> bool:
        there_too = ends(guarded.open, [f"east.{there}"]) >= count
        return there_too and ends(clusters.east, [f"north.{back}"]) >= count

    def write_both(tag: str) -> None:
        fill(clusters.east, there, tag, 10, 1)
        fill(guarded.open, back, tag, 10, 1)

    with live(spark, path) as run:
        write_both("a")
        until(lambda: arrived(10), "with the first password", 150)
        guarded.set_password("second")
        guarded.restart()
        write_both("b")
        until(
            lambda: any("credentials" in incident["detail"] for incident in run.incidents()),
            "a refusal is told",
            150,
        )
        guarded.put("second")
        until(
            lambda: "b:9" in values(read_topic(guarded.open, f"east.{there}")[0]),
            "there, with the second",
            240,
        )
        until(
            lambda: "b:9" in values(read_topic(clusters.east, f"north.{back}")[0]),
            "back, with the second",
            240,
        )
        until(lambda: not run.incidents(), "nothing is wrong any more", 150)
    wanted = texts("a", 10, 1) + texts("b", 10, 1)
    assert values(read_topic(guarded.open, f"east.{there}")[0]) == wanted
    assert values(read_topic(clusters.east, f"north.{back}")[0]) == wanted
