"""The pages as a site (`make site`): all of them, each link and anchor, and a search."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.docs_scripts import docs_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stderr
    return place


@pytest.fixture(scope="module")
def make_site() -> ModuleType:
    return docs_script("make_site")


def test_every_page_is_on_it_and_found_by_its_search(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"}
    pages |= {"index", "pages", "DESIGN", "CONTRIBUTING", "CHANGELOG", "ops/index"}
    searched = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    found = {entry["location"].partition("#")[0] for entry in searched}
    navigation = (site / "index.html").read_text()
    for page in pages:
        assert (site / f"{page}.html").is_file() and f"{page}.html" in found | {"index.html"}, page
        assert f'href="{page}.html"' in navigation, page


def test_each_link_leads_to_a_file_of_it_and_to_an_anchor(site: Path) -> None:
    """Which MkDocs looks for too, except in what it does not take for a page."""
    for page in site.rglob("*.html"):
        for link in re.findall(r'href="([^":]+)"', page.read_text(encoding="utf-8")):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if target.is_dir():
                target /= "index.html"
            assert target.is_file() or page.name == "404.html", (page.name, link)
            if anchor and target.suffix == ".html":
                assert f'id="{anchor}"' in target.read_text(encoding="utf-8"), (page.name, link)


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src="|rel="stylesheet" href=")https?:', text), page.name


def test_links_lead_from_a_place_on_the_site_to_one(make_site: ModuleType) -> None:
    assert make_site.place_of("docs/trust.md") == "trust.md"
    assert make_site.place_of("ops/README.md") == "ops/README.md"
    assert make_site.repository_path("docs/trust.md", "../DESIGN.md") == "DESIGN.md"
    text = "[a](trust.md#x)\n```\n[b](nowhere.md)\n```\n[c](https://a.b/c.md)\n"
    assert make_site.targets_of("docs/operate.md", text) == {"docs/trust.md"}
