"""What is made once for a user is found again by later processes, and never half of it."""

from pathlib import Path

import pytest

from mirrorlake.caches import cache_root, cached_text


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIRRORLAKE_CACHE", str(tmp_path / "cache"))
    return cache_root()


def test_it_is_made_once(root: Path) -> None:
    made = iter(["größer", "again"])
    texts = [cached_text("some/thing.js", lambda: next(made)) for _ in range(3)]
    assert texts == ["größer"] * 3 and next(made) == "again"
    assert [path.name for path in (root / "some").iterdir()] == ["thing.js"]


def test_where_nothing_can_be_written_it_is_made_each_time(root: Path) -> None:
    root.write_text("a file where the folder would be", encoding="utf-8")
    assert cached_text("some/thing.js", lambda: "made") == "made"


def test_what_cannot_be_made_leaves_nothing(root: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        cached_text("some/thing.js", lambda: str(1 // 0))
    assert not (root / "some").exists()
