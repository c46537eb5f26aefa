"""Every query that the pages show names tables, views and columns that exist: each is run over an
empty lake."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.path_tables import PathTables

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "notebooks").glob("*.py")]
)
#: Blocks of SQL, and queries in quotes or in code within the text.
SHOWN = re.compile(
    r"""^```sql\n(.*?)^```|["'](SELECT\s[^"'\n]+(?:'[^'\n]*'[^"'\n]*)*)["']|`(SELECT\s[^`]+)`""",
    re.MULTILINE | re.DOTALL,
)


def queries(path: Path) -> Iterator[str]:
    for block, quoted, inline in SHOWN.findall(path.read_text(encoding="utf-8")):
        for text in (block or quoted or inline).split(";"):
            if text.strip().startswith(("SELECT", "WITH")) and "…" not in text:  # a grant is none
                yield text.strip()


CASES = [(path, text) for path in PAGES for text in queries(path)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> DuckLake:
    directory = tmp_path_factory.mktemp("lake")
    tables = PathTables(directory)
    for table in TABLES:
        tables.create(table)
    return DuckLake(directory, None)


@pytest.mark.parametrize(
    ("path", "text"), CASES, ids=[f"{path.name}-{at}" for at, (path, _) in enumerate(CASES)]
)
def test_it_runs(lake: DuckLake, path: Path, text: str) -> None:
    values = dict.fromkeys(re.findall(r"(?<!:):(\w+)", text), "east->west")
    assert lake.rows(text, values).columns


def test_there_are_many() -> None:
    assert len(CASES) > 25
