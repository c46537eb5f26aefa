"""What the lake knows of a source cluster, as landing asks for it."""

from pathlib import Path
from typing import Any

from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of
from mirrorlake.landing.generations import LakeLandingStore
from tests.support.lake_rows import no_session

STAGE: Any = None  # it is not asked


def test_which_leaders_logs_match_the_stage_by_is_known_to_the_next_host_too(
    tmp_path: Path,
) -> None:
    """Whose checkpoints are its own, as of a lake in a store: else it would know none, or those of
    weeks ago."""
    place = place_of(tmp_path / "lake")
    one, other = (
        LakeLandingStore(PathLake(no_session, place, tmp_path / host), STAGE, "east")
        for host in ("one", "other")
    )
    assert other.epochs() == {}
    one.note_epochs({("t", 0): 5, ("t", 1): 6})
    assert other.epochs() == {("t", 0): 5, ("t", 1): 6}
    (place / "_checkpoints" / "leases" / "landing-epochs" / "east.json").write(b"{")
    assert other.epochs() == {}, "they may be damaged"
