"""The lakes of a benchmark: what topology files say, and what the environment says meanwhile."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorlake.cli.bench import BenchLake
from mirrorlake.config.lake import Lake
from mirrorlake.devtools.bench.contestants import Job, write_topology
from mirrorlake.devtools.bench.lakes import KINDS, JobLake, lakes_of
from mirrorlake.lake.place import place_of


def written(lake: JobLake | None, folder: Path) -> dict[str, Any]:
    """What the topology file of a run says of its lake."""
    job = Job("127.0.0.1:1", "127.0.0.1:2", "t", "east", folder, own_lake=lake)
    write_topology(job)
    document: dict[str, Any] = yaml.safe_load(job.topology.read_text(encoding="utf-8"))
    return document["lake"]


def test_a_lake_lies_beside_its_topology_file(tmp_path: Path) -> None:
    with lakes_of("folder", tmp_path / "lakes") as lake_of:
        lake = lake_of("feel", tmp_path)
    assert written(lake, tmp_path) == written(None, tmp_path) == {"path": "./lake"}
    assert lake.stage == f"delta.`{tmp_path}/lake/records`"


@pytest.mark.parametrize(("kind", "catalog"), [("s3", None), ("tables", "main")])
def test_a_lake_in_a_store_is_reached_by_what_the_environment_says(
    tmp_path: Path, kind: str, catalog: str | None
) -> None:
    before = dict(os.environ)
    with lakes_of(kind, tmp_path / "lakes") as lake_of:
        said = Lake(**written(lake_of("feel", tmp_path), tmp_path))
        assert said.catalog == catalog
        options = {key: os.path.expandvars(_plain(text)) for key, text in said.storage.items()}
        place = place_of(str(said.path), options) / "probe"
        place.create(b"here")
        assert place.read() == b"here"
    assert os.environ == before


def _plain(text: str) -> str:
    """`${env:NAME}` as a shell writes it."""
    return text.replace("env:", "")


def test_the_command_knows_all_kinds() -> None:
    assert [kind.value for kind in BenchLake] == [*KINDS]
