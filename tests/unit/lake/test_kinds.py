"""Two kinds of lake behind one face: few places outside of `lake` ask which of them it is."""

import re
from collections import Counter
from pathlib import Path

import mirrorlake
from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.session_tables import SessionTables

SOURCE = Path(mirrorlake.__file__).parent
ASKS = re.compile(
    r"isinstance\(\w*(?:lake|tables)\w*, (?:PathLake|CatalogLake)\)|lake\.directory is|path_tables "
    r"is"
)
#: Who commits what lands; a catalog's platform keeps its tables; what a reader
#: without a session knows of the stage, and of the busiest minute, before a plan.
KNOWN = {"landing/land.py": 1, "run/replicator.py": 1, "library/planning.py": 2}
#: What the package `lake` alone asks of one kind: who opens a catalog finds its tables' files.
FILES_OF_A_CATALOG = {"files", "use_files", "stop_using_files", "columns", "names"}


def test_what_asks_for_the_kind_of_a_lake_is_known() -> None:
    counts = Counter[str]()
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if not name.startswith("lake/"):
            counts[name] += len(ASKS.findall(path.read_text(encoding="utf-8")))
    assert +counts == KNOWN


def test_both_kinds_do_all_that_a_lake_does_and_no_more() -> None:
    both = [*vars(SessionTables), *vars(Reader), *vars(Lake), *Lake.__annotations__]
    face = {name for name in both if not name.startswith("_")}
    for kind in (PathLake, CatalogLake):
        assert not kind.__abstractmethods__
        own = FILES_OF_A_CATALOG if kind is CatalogLake else set()
        assert {name for name in vars(kind) if not name.startswith("_")} - own <= face
