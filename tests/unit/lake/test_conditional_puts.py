"""A store in which commits could overwrite each other holds no lake."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import mirrorlake
from mirrorlake.errors import LakeError
from mirrorlake.lake.conditional_puts import check_conditional_puts
from mirrorlake.lake.place import place_of
from tests.support.lake_rows import FLOW
from tests.support.object_store import KEY, SECRET, Store
from tests.support.store_link import StoreLink, link_to


@pytest.fixture
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


def test_one_that_has_conditional_puts_keeps_nothing_of_it(link: StoreLink) -> None:
    root = Store(link.address).place("with")
    check_conditional_puts(root)
    assert (root / "_checkpoints").names() == []


def test_one_that_overwrites_is_refused(link: StoreLink) -> None:
    link.conditional = False
    root = Store(link.address).place("without")
    with pytest.raises(LakeError, match=r"no lake can be made at s3://lakes/without: .*put"):
        check_conditional_puts(root)
    assert (root / "_checkpoints").names() == []


def test_a_folder_is_not_asked(tmp_path: Path) -> None:
    check_conditional_puts(place_of(tmp_path / "lake"))
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("asked", ["plan", "begin"])
def test_nothing_is_begun_there(
    link: StoreLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    link.conditional = False
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    topology = tmp_path / "mirrorlake.yml"
    clusters = {"east": {"bootstrap_servers": "a:1"}, "west": {"bootstrap_servers": "b:1"}}
    document = {"clusters": clusters, "flows": {FLOW: {"topics": ["orders"]}}}
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    Store(link.address).hold(topology, asked)
    lake = mirrorlake.open(topology)
    with pytest.raises(LakeError, match="no lake can be made at"):
        lake.plan() if asked == "plan" else lake.internals.tables
    put = [request.key for request in link.requests if request.kind == "PUT"]
    assert len(put) == 2 and all("/probe-" in key for key in put)
