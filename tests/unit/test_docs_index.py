"""docs/README.md leads to every page, and says what is on it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDEX = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\) \| (.+) \|$", INDEX, re.MULTILINE)


def test_every_page_is_in_the_index_once() -> None:
    pages = sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md")
    listed = sorted(target for _, target, _ in ROWS if "/" not in target)
    assert listed == pages, "each page of docs/ has one row in docs/README.md"


def test_each_row_names_its_page_and_says_what_it_holds() -> None:
    for title, target, holds in ROWS:
        assert title == Path(target).name and len(holds) > 10


def test_the_readme_leads_to_the_index() -> None:
    assert "(docs/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
