"""Fixtures that tests of every folder share."""

import gc
import os
import uuid
from collections.abc import Iterator
from typing import Any, cast

import psutil
import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from mirrorlake.dashboard.data import read_data
from mirrorlake.dashboard.model import load_dashboard
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.native import SWITCH
from mirrorlake.spark.class_archive import BROKERS
from mirrorlake.spark.jars import connector_jars
from mirrorlake.spark.session import SHORT_VARIABLE, local_session
from mirrorlake.terminal import end_silently
from tests.support.clusters import ClusterPair, cluster_pair, given_clusters
from tests.support.metastore import Metastore, hive_metastore
from tests.support.object_store import Store, moto_server
from tests.support.sample_lake import empty_lake, fill
from tests.support.session import OnDemand

pytest_plugins = (
    "tests.support.chunks",
    "tests.support.dealing",
    "tests.support.hangs",
    "tests.support.laws",
    "tests.support.matrix_notes",
)
end_silently()
# The sessions of the tests handle few rows: compiling code for them costs more than it gives.
os.environ.setdefault(SHORT_VARIABLE, "1")
# Nor does optimising the code of brokers that live for a test or two: they start with half the CPU.
os.environ.setdefault(BROKERS.options, "-XX:TieredStopAtLevel=1")
# Recording with MLflow costs each run some seconds of CPU; its own tests switch it on.
os.environ.setdefault("MIRRORLAKE_TRACKING", "off")
# How long an example takes says more about the machine than about the code.
# The same code gets the same examples every time; `make test-all` looks for new ones.
settings.register_profile("mirrorlake", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=250)
settings.load_profile("mirrorlake")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many processes `-n auto` means: four, which keep two cores busy, since tests wait half of
    their time, and three where there is less memory. Each has a session and clusters of its own,
    4 GiB. On clusters that somebody brings only this one, since tests count and delete what is on
    them."""
    if given_clusters():
        return 0
    return 4 if psutil.virtual_memory().total >= 20 << 30 else 3


def pytest_collection_finish() -> None:
    """What is there before the first test stays, so nothing that collects garbage looks at it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """No test leaves clients of clusters behind, with their threads and the processes that ask
    about groups: they end when they are collected, and cost CPU until then. It is part of the
    test's time (`trylast`): a client that never ends is a failure of the test, not of the run."""
    result = yield
    if "integration" in item.path.parts:
        gc.collect()
    return result


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPair]:
    """Two real Kafka clusters: yours (MIRRORLAKE_TEST_BOOTSTRAP_A and _B), or two started for this
    run."""
    with cluster_pair(tmp_path_factory.mktemp("clusters")) as pair:
        yield pair


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test, and no earlier run on the same clusters, has used."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{test[:60]}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(params=["native", "python"])
def lane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways for records through this process: by librdkafka's C interface, or as Python's
    objects."""
    monkeypatch.setenv(SWITCH, "off" if request.param == "python" else "")
    return str(request.param)


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who answers what is asked of a lake that is a folder."""
    if request.param == "spark":
        monkeypatch.setattr(PathLake, "reader", property(lambda lake: lake))
    return str(request.param)


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An S3 on this machine; tests call what they put there by names of their own."""
    with moto_server(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The local session that in-process runs share, on two cores, once one asks it something."""
    warehouse = tmp_path_factory.mktemp("warehouse")

    def start() -> SparkSession:
        settings = {"spark.sql.warehouse.dir": str(warehouse)}
        # A query of a user's is moved between clusters (test_spark_queries.py).
        return local_session(cores="2", settings=settings, more_jars=connector_jars())

    session = OnDemand(start)
    yield cast(SparkSession, session)
    session.end()


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    """A Hive metastore; each test has schemas of its own there."""
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as running:
        yield running


@pytest.fixture(scope="session")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with six hours of history (tests/support/sample_lake.py); tests only read it."""
    lake = empty_lake(spark, tmp_path_factory.mktemp("history"))
    fill(
        lake
    )  # its end is now, when the lake is made: else its heartbeats are old before they are read
    return lake


@pytest.fixture(scope="session")
def history_data(history: Lake) -> dict[str, Any]:
    """What the dashboard reads of it."""
    return read_data(history, load_dashboard())
