"""What is on the site that `make site` builds (mkdocs.yml): the pages of docs/, under the headings
of docs/README.md, and those of the repository's other folders that they lead to.

MkDocs knows one folder of pages. So those outside of it get a place in it, and links are written
anew, from where a page is in the repository to where it is on the site.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
#: Pages whose place on the site is another than in the repository: their paths there and here.
PLACES: Mapping[str, str] = {"README.md": "index.md", "docs/README.md": "pages.md"}
_HEADING, _ROW = re.compile(r"## (.+)"), re.compile(r"\| \[([^\]]+)\]\(([^)]+)\)")
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_FENCE = re.compile(r"^( *```.*?^ *```)", re.MULTILINE | re.DOTALL)


def place_of(path: str) -> str:
    """Where a file of the repository is on the site. Pure."""
    return PLACES.get(path, path.removeprefix("docs/"))


def on_config(config: Any) -> Any:
    """The navigation: what docs/README.md lists, under its headings."""
    nav: list[dict[str, Any]] = [{"mirrorlake": "index.md"}, {"All pages": "pages.md"}]
    for line in (ROOT / "docs" / "README.md").read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.fullmatch(line):
            nav.append({heading[1]: []})
        elif (row := _ROW.match(line)) and ".md" in row[2]:
            page = place_of(posixpath.normpath(posixpath.join("docs", row[2])))
            [*nav[-1].values()][0].append({title_of(row[2]): page})
    config.nav = nav
    return config


def title_of(link: str) -> str:
    """The first heading of a page that docs/README.md links to."""
    text = (ROOT / "docs" / link).read_text(encoding="utf-8")
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))


def on_files(files: Files, config: Any) -> Files:
    """Put pages and files of the repository that pages lead to where they are on the site."""
    there = {file.src_uri for file in files}
    if "README.md" in there:
        files.remove(files.src_uris["README.md"])
    waiting = {*PLACES, *(f"docs/{uri}" for uri in there if uri.endswith(".md"))}
    known = set(waiting)
    while waiting:
        path = waiting.pop()
        if place_of(path) not in there:
            source = str(ROOT / path)
            files.append(File.generated(config, place_of(path), abs_src_path=source))
        if path.endswith(".md"):
            fresh = targets_of(path, (ROOT / path).read_text(encoding="utf-8")) - known
            known |= fresh
            waiting |= fresh
    listed = set(re.findall(r"'([^']+\.md)'", str(config.nav)))
    others = sorted({place_of(path) for path in known if path.endswith(".md")} - listed)
    config.nav.append({"Around a run": [{title_of(f"../{path}"): path} for path in others]})
    return files


def targets_of(path: str, text: str) -> set[str]:
    """The files of the repository that a page links to. Pure but for a look at what is there."""
    links = (link[2] for link in _LINK.finditer(_FENCE.sub("", text)))
    inside = {repository_path(path, link) for link in links if "://" not in link}
    return {target for target in inside if (ROOT / target).is_file()}


def repository_path(page: str, link: str) -> str:
    """What a link of a page leads to, from the root of the repository. Pure."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Write a page's links anew; its code stays as it is."""
    here = page.file.src_uri
    by_place = {place: path for path, place in PLACES.items()}
    beside = ROOT / "docs" / here
    path = by_place.get(here) or (f"docs/{here}" if beside.is_file() else here)

    def rewritten(link: re.Match[str]) -> str:
        if "://" in link[2] or link[2].startswith("mailto:"):
            return link[0]
        target = place_of(repository_path(path, link[2]))
        return (
            f"{link[1]}{posixpath.relpath(target, posixpath.dirname(here) or '.')}{link[3] or ''})"
        )

    parts = _FENCE.split(markdown)
    return "".join(part if at % 2 else _LINK.sub(rewritten, part) for at, part in enumerate(parts))
