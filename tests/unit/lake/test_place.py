"""Where a lake may be."""

from pathlib import Path

import pytest

from mirrorlake.config.topology import Lake as Location
from mirrorlake.errors import LakeError
from mirrorlake.lake.folder import folder_of
from mirrorlake.lake.opening import check_location, lake_exists


@pytest.mark.parametrize(
    "url", ["s3://bucket/lake", "abfss://container@account.dfs.core.windows.net/lake", "dbfs:/lake"]
)
def test_a_url_is_refused_and_makes_no_folder_of_its_name(tmp_path: Path, url: str) -> None:
    for ask in (check_location, lake_exists):
        with pytest.raises(LakeError, match="a path is a folder"):
            ask(Location(path=url), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_relative_to_the_file(tmp_path: Path) -> None:
    assert folder_of("./lake", tmp_path) == tmp_path / "lake"
    assert folder_of("/mnt/s3/lake", tmp_path) == Path("/mnt/s3/lake")
