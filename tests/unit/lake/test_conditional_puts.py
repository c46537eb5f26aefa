"""A store in which commits could overwrite each other holds no lake, nor does a file system without
hard links."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import mirrorlake
from mirrorlake.errors import LakeError
from mirrorlake.lake.conditional_puts import check_conditional_puts
from mirrorlake.lake.place import place_of
from tests.support.lake_rows import FLOW, no_session, opened
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
    with pytest.raises(LakeError, match=r"no lake can be kept at s3://lakes/without: .*put"):
        check_conditional_puts(root)
    assert (root / "_checkpoints").names() == []


def without_links(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def link(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)


def test_a_folder_that_is_to_be_made_keeps_nothing_of_it(tmp_path: Path) -> None:
    check_conditional_puts(place_of(tmp_path / "a" / "lake"))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_links_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    without_links(monkeypatch, number)
    what = r"no lake can be made at .*/lake: its file system \(\w[\w.]+\) has no hard links .*s3://"
    with pytest.raises(LakeError, match=what):
        check_conditional_puts(place_of(tmp_path / "lake"))
    assert not any(tmp_path.iterdir())


def test_another_failure_says_nothing_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_links(monkeypatch, errno.ENOSPC)
    check_conditional_puts(place_of(tmp_path / "lake"))


@pytest.mark.parametrize("asked", ["plan", "begin"])
def test_nothing_is_begun_where_there_are_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    without_links(monkeypatch, errno.EPERM)
    topology = topology_of(tmp_path)
    with pytest.raises(LakeError, match="has no hard links"):
        begin_or_plan(asked, topology)
    assert not list(tmp_path.rglob("_delta_log"))


def begin_or_plan(asked: str, topology: Path) -> None:
    """Make a lake, as a run does, or plan."""
    if asked == "plan":
        mirrorlake.open(topology).plan()
    else:
        opened(no_session, topology)


def topology_of(folder: Path) -> Path:
    path = folder / "mirrorlake.yml"
    clusters = {"east": {"bootstrap_servers": "a:1"}, "west": {"bootstrap_servers": "b:1"}}
    flows = {FLOW: {"topics": ["orders"]}}
    document = {"clusters": clusters, "lake": {"path": "./lake"}, "flows": flows}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("asked", ["plan", "begin"])
def test_nothing_is_begun_there(
    link: StoreLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    link.conditional = False
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    topology = topology_of(tmp_path)
    Store(link.address).hold(topology, asked)
    with pytest.raises(LakeError, match="no lake can be kept at"):
        begin_or_plan(asked, topology)
    put = [request.key for request in link.requests if request.kind == "PUT"]
    assert len(put) == 2 and all("/probe-" in key for key in put)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(
            "plan", marks=pytest.mark.wide("test_a_lake_that_was_copied_there_is_not_written_to")
        ),
        "begin",
    ],
)
def test_a_lake_that_was_copied_there_is_not_written_to(
    link: StoreLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """Of two processes each would overwrite the other's commits. To read it asks for no put."""
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    topology = topology_of(tmp_path)
    Store(link.address).hold(topology, f"copied-{asked}")
    assert opened(no_session, topology)[0].lake_id
    link.conditional = False
    before = len(link.requests)
    with pytest.raises(LakeError, match="no lake can be kept at"):
        begin_or_plan(asked, topology)
    assert link.counted(before)["PUT"] == 2
    before = len(link.requests)
    assert not mirrorlake.open(topology).rows("SELECT offset FROM records")
    mirrorlake.open(topology).status()
    assert link.counted(before)["PUT"] == 0
