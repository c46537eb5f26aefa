"""The library beside an object store that refuses: LakeError, one sentence, and nothing of what it
is made of."""

import inspect
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

import mirrorlake
from mirrorlake.errors import LakeError
from mirrorlake.lake.reader import Frame
from mirrorlake.library.flows import OpenFlow
from mirrorlake.library.lake import OpenLake
from tests.support.lake_rows import FLOW, ago, no_session, opened
from tests.support.object_store import KEY, SECRET, Store
from tests.support.store_link import Fault, Request, StoreLink, link_to

ASKED: dict[str, Callable[[OpenLake], object]] = {
    "status": lambda lake: lake.status(),
    "rows": lambda lake: lake.rows("SELECT * FROM records"),
    "arrow": lambda lake: lake.arrow("SELECT * FROM flow_status"),
    "incidents": lambda lake: lake.incidents(),
    "translate": lambda lake: lake.translate(FLOW, "orders", 0, 3),
    "translate_all": lambda lake: lake.translate_all(FLOW, [("orders", 0, 3)]),
    "trace": lambda lake: lake.flows[FLOW].trace("orders", 0, 3),
    "divergence": lambda lake: lake.flows[FLOW].divergence(),
    "maintain": lambda lake: lake.maintain(dry_run=True),
    "resolve": lambda lake: lake.resolve("skip"),
    "run": lambda lake: lake.run(once=True),
}


@pytest.fixture(scope="module")
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


@pytest.fixture
def topology(link: StoreLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a lake behind the link, at which nothing is."""
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "mirrorlake.yml"
    nowhere = {"bootstrap_servers": "127.0.0.1:1"}
    document = {"clusters": {"east": nowhere, "west": nowhere}, "flows": {FLOW: {}}}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    Store(link.address).hold(path, "beside", max_retries="1", retry_timeout="2s")
    return path


def refused_by(ask: Callable[[OpenLake], object], lake: OpenLake) -> LakeError:
    with pytest.raises(LakeError) as raised:
        ask(lake)
    pages = "".join(traceback.format_exception(raised.value))
    assert "deltalake" not in pages.replace("mirrorlake", "") and "obstore" not in pages, pages
    assert "\n" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_ends_with_a_sentence(link: StoreLink, topology: Path, name: str) -> None:
    link.fault = lambda _request: "expired"
    problem = refused_by(ASKED[name], mirrorlake.open(topology))
    # what a run asks first is who has its flows
    assert problem.message.startswith(
        ("the lake's store refused a request, or did not answer", f"who has flow {FLOW}")
    )
    assert "ExpiredToken" in problem.message and problem.exit_code == 2


@pytest.mark.parametrize(
    "ask",
    [
        lambda lake: lake.rows("SELECT * FROM clusters"),
        lambda lake: lake.arrow("SELECT * FROM clusters"),
    ],
    ids=["rows", "arrow"],
)
def test_a_store_that_refuses_the_rows_themselves(
    link: StoreLink, topology: Path, ask: Callable[[OpenLake], object]
) -> None:
    """A reader of DuckDB's is in between."""
    link.fault = lambda _request: None
    seen = Frame("alias STRING, cluster_id STRING, seen TIMESTAMP", [("east", "x", ago(0))])
    opened(no_session, topology)[0].change("clusters_seen", {"seen": seen})

    def rows_are_refused(request: Request) -> Fault | None:
        return "expired" if request.key.endswith(".parquet") else None

    link.fault = rows_are_refused
    problem = refused_by(ask, mirrorlake.open(topology))
    assert "ExpiredToken" in problem.message
    assert "--engine" not in problem.message, "no other engine would be told anything else"


@pytest.mark.parametrize("kind", [OpenLake, OpenFlow])
def test_no_method_is_forgotten(kind: type) -> None:
    asked = {
        name: method
        for base in kind.__mro__
        for name, method in vars(base).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    assert len(asked) > 5
    assert [name for name, method in asked.items() if not hasattr(method, "__wrapped__")] == []
