"""Where a lake may be, and what its files are to the rest."""

import ast
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import LakeError
from mirrorlake.lake.folder import lake_place
from mirrorlake.lake.opening import check_location, lake_exists
from mirrorlake.lake.place import FolderPlace, place_of
from mirrorlake.lake.store_place import StorePlace
from mirrorlake.library.store_refusals import store_refusal
from tests.support.commands import ROOT
from tests.support.disks import send_links_twice
from tests.support.syntax import syntax_of

SRC = ROOT / "src" / "mirrorlake"


@pytest.mark.parametrize("url", ["dbfs:/lake", "ftp://host/lake", "s3:bucket/lake"])
def test_a_url_that_is_no_store_is_refused_and_makes_no_folder_of_its_name(
    tmp_path: Path, url: str
) -> None:
    for ask in (check_location, lake_exists):
        with pytest.raises(LakeError, match="a path is a folder"):
            ask(Location(path=url), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_relative_to_the_file(tmp_path: Path) -> None:
    assert lake_place(Location(path="./lake"), tmp_path) == tmp_path / "lake"
    assert lake_place(Location(path="/mnt/s3/lake"), tmp_path) == Path("/mnt/s3/lake")


def test_options_of_a_store_are_resolved_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_KEY", "s3cret")
    location = Location(path="s3://bucket/lake/", storage={"aws_secret": "${env:LAKE_KEY}"})
    place = lake_place(location, tmp_path)
    assert place.options == {"aws_secret": "s3cret"}
    assert "s3cret" not in repr(place) and str(place / "records") == "s3://bucket/lake/records"
    assert (place / "records").below("s3://bucket/lake/records/a/b.parquet") == "a/b.parquet"


def test_a_place_goes_to_tasks(tmp_path: Path) -> None:
    for place in (place_of(tmp_path), place_of("s3://bucket/lake", {"a": "b"})):
        there = pickle.loads(pickle.dumps(place / "records"))
        assert there == place / "records" and type(there) is type(place)
    assert isinstance(place, StorePlace)


@pytest.mark.slow
def test_hdfs_that_does_not_answer_is_said_in_a_sentence(tmp_path: Path) -> None:
    """After three minutes: so long its client tries."""
    pytest.importorskip("hdfs_native")
    place = lake_place(Location(path="hdfs://127.0.0.1:1/lakes/a"), tmp_path)
    assert pickle.loads(pickle.dumps(place / "records")) == place / "records" and place.in_store
    with pytest.raises(OSError) as raised:
        place.read()
    refusal = store_refusal(raised.value)
    assert refusal is not None and "did not answer: HDFS: " in str(refusal)


def test_a_file_is_made_once_and_as_a_whole(tmp_path: Path) -> None:
    file = FolderPlace(tmp_path) / "folder" / "file"
    file.create(b"one")
    with pytest.raises(FileExistsError):
        file.create(b"two")
    assert file.read() == b"one" and (FolderPlace(tmp_path) / "folder").names() == ["file"]
    file.write(b"three")
    assert file.read() == b"three"
    assert (file / "below").names() == []
    file.delete()
    file.delete()
    with pytest.raises(FileNotFoundError):
        file.read()
    assert (FolderPlace(tmp_path) / "elsewhere").names() == []


def test_what_a_file_holds_is_on_the_disk_before_it_has_its_name_which_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    for done in (os.fsync, os.link):

        def noted(*given: Any, done: Any = done) -> None:
            steps.append(done.__name__)
            done(*given)

        monkeypatch.setattr(os, done.__name__, noted)
    (FolderPlace(tmp_path) / "commit").create(b"one")
    assert steps == ["fsync", "link", "fsync"]
    writer = (FolderPlace(tmp_path) / "rows").writer()
    Path(str(writer.sink)).write_bytes(b"rows")
    assert writer.close() == 4 and steps[3:] == ["fsync"]


#: Modules that make a path of this host, each for something that is not the lake's.
PATHS = {
    **{"duck": 1, "folder": 1, "opening": 2, "warmup": 1},  # what spills; a user's own folder
    **{"place": 0, "landing/job": 1},  # the pace file, on the driver's disk
    "conditional_puts": 2,  # where a folder lies, and what its file system is
    "log_repair": 1,  # where a checkpoint is made again, before it goes to the lake
    "run/preparing": 1,  # where a process that stands by rehearses, in a folder of its own
}


def test_what_is_of_the_lake_is_named_by_places_alone() -> None:
    """A path that is made of a URL would be a folder beside the process."""
    made = {}
    for package in ("lake", "landing", "produce", "offsets", "run", "resend", "verify", "forget"):
        for module in sorted((SRC / package).glob("*.py")):
            calls = [
                node
                for node in ast.walk(syntax_of(module.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Path", "open")
            ]
            name = module.stem if package == "lake" else f"{package}/{module.stem}"
            made[name] = len(calls)
    assert {name: count for name, count in made.items() if count} == {
        name: count for name, count in PATHS.items() if count
    }


def test_a_link_whose_answer_was_lost_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over NFS: the server has made it, and refuses the same request when it comes again."""
    send_links_twice(monkeypatch)
    file = FolderPlace(tmp_path) / "file"
    file.create(b"one")
    assert file.read() == b"one" and FolderPlace(tmp_path).names() == ["file"]
    with pytest.raises(FileExistsError):
        file.create(b"one")
    assert file.read() == b"one" and FolderPlace(tmp_path).names() == ["file"]
