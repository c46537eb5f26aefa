"""What comments, docstrings and pages refer to is in this repository: files, sections of pages,
names in modules.

Public documents (KIPs, web pages) may be named; a paper that only its writer had may not. A section
is named behind its page, as in: DESIGN.md, "Tables". That is a heading, or the bold words that a
paragraph or an item begins with.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.syntax import syntax_of

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "mirrorlake"
FOLDERS = ("src", "tests", "docs", "notebooks", "bundles", "ops")
FILES = sorted(
    path
    for path in (
        *ROOT.glob("*.*"),
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")),
    )
    if path.suffix in (".md", ".py", ".sql", ".yml") and path != Path(__file__)
)
PATHS = [f"/{path.relative_to(ROOT).as_posix()}" for path in FILES]
PACKAGES = [
    path.name for path in CODE.iterdir() if path.is_dir() and (path / "__init__.py").exists()
]
#: What pages tell users to write themselves.
THEIRS = {"naming.py", "file.py"}

_STRING_OR_COMMENT = re.compile(
    r'"{3}(?:\\.|[^\\])*?"{3}'
    r"|'{3}(?:\\.|[^\\])*?'{3}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|(?P<comment>#[^\n]*)",
    re.DOTALL,
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FILE = re.compile(
    r"(?<![\w./:*<-])((?:\.\./)*(?:[\w-][\w./-]*\.(?:md|py)|[\w-]+/[\w./-]*\.sql))\b(?!\w)"
    r"(?:: (\w+)`)?(?:, \"([^\"]+)\")?"
)
_MODULE = re.compile(rf"`(mirrorlake\.)?((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")
_PAPERS = re.compile(r"\bDESIGN(?!\.md)\b|\bissue #?\d+|\b[Ll]aws? \d|\bsections? \d|\.md \d|§")


def told(path: Path) -> Iterator[tuple[int, str]]:
    """The comments, docstrings and paragraphs of a file, each on one line, by the line where it
    begins."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield 1, text
    elif path.suffix == ".py":
        yield from _docstrings(syntax_of(text))
        yield from _joined([(at, comment.lstrip("#: ")) for at, comment in comments(text)])
    else:
        mark = "--" if path.suffix == ".sql" else "#"
        lines = [(at, line.partition(mark)) for at, line in enumerate(text.splitlines(), 1)]
        yield from _joined([(at, comment.strip()) for at, (_, found, comment) in lines if found])


def comments(text: str) -> Iterator[tuple[int, str]]:
    """The comments of a module, by line: for all modules `tokenize` takes ten seconds."""
    line, begun = 1, 0
    for lexed in _STRING_OR_COMMENT.finditer(text):
        if comment := lexed["comment"]:
            line, begun = line + text.count("\n", begun, lexed.start()), lexed.start()
            yield line, comment


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, " ".join(node.value.value.split())


def _joined(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Comments on lines that follow each other are one."""
    begin, parts = 0, list[str]()
    for at, line in lines:
        if parts and at != begin + len(parts):
            yield begin, " ".join(parts)
            parts = []
        begin = begin if parts else at
        parts.append(line)
    if parts:
        yield begin, " ".join(parts)


def found(mention: str, path: Path) -> Path | None:
    """The file that is meant: beside the one that names it, or whose path ends so."""
    if mention.startswith("../"):
        return beside if (beside := (path.parent / mention).resolve()).exists() else None
    fits = [ROOT / each[1:] for each in PATHS if each.endswith(f"/{mention}")]
    return next((each for each in fits if each.parent == path.parent), fits[0] if fits else None)


@cache
def sections(page: Path) -> frozenset[str]:
    """Headings of a page, and the words in bold with which its paragraphs and items begin."""
    text = page.read_text(encoding="utf-8")
    leads = re.findall(r"^(?:- |\d+\. )?\*\*([^*]+)\*\*", text, re.MULTILINE)
    return frozenset(re.findall(r"^#+ (.+)$", text, re.MULTILINE)) | {
        lead.rstrip(".:") for lead in leads
    }


def anchors(page: Path) -> set[str]:
    """What GitHub makes of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def names(module: Path) -> frozenset[str]:
    """What a module defines, at its top or in its classes."""
    nodes = list(ast.walk(syntax_of(module.read_text(encoding="utf-8"))))
    defined = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return frozenset(defined | {node.id for node in nodes if isinstance(node, ast.Name)})


def has_module(dotted: str) -> bool:
    """Whether `package.module.name` is there."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        base = CODE.joinpath(*parts[:count])
        module = (
            base.with_suffix(".py") if base.with_suffix(".py").exists() else base / "__init__.py"
        )
        if module.exists():
            return all(part in names(module) for part in parts[count : count + 1])
    return False


def dangling(path: Path, text: str) -> Iterator[str]:
    """What a text refers to that is not there."""
    for link in _LINK.findall(text) if path.suffix == ".md" else ():
        target, _, anchor = link.partition("#")
        page = (path.parent / target).resolve() if target else path
        if not link.startswith(("http://", "https://")) and not (
            page.exists() and (not anchor or anchor in anchors(page))
        ):
            yield link
    for mention, name, section in _FILE.findall(_LINK.sub("]", text)):
        page = found(mention, path)
        if page is None and mention not in THEIRS:
            yield mention
        elif page is not None and name and name not in names(page):
            yield f"{mention}: {name}"
        elif (
            page is not None and page.suffix == ".md" and section and section not in sections(page)
        ):
            yield f'{mention}, "{section}"'
    for ours, dotted in _MODULE.findall(text):
        if not has_module(dotted) and (ours or has_module(".".join(dotted.split(".")[:2]))):
            yield dotted  # without our name in front, it may be a setting: `lake.checkpoints`
    yield from _PAPERS.findall(text)


def test_what_is_referred_to_is_there() -> None:
    assert [
        f"{path.relative_to(ROOT)}, line {at}: {what}"
        for path in FILES
        for at, text in told(path)
        for what in dangling(path, text)
    ] == []


ODD = r'''a = '#' '\\'  # one
b = r"\"#" #two
c = f"""#
"#"""  # three
'''


def test_comments_are_those_that_python_sees() -> None:
    modules = [path for path in (*FILES[::40], Path(__file__)) if path.suffix == ".py"]
    assert len(modules) > 20 and len(list(comments(ODD))) == 3
    for text in (ODD, *(path.read_text(encoding="utf-8") for path in modules)):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        seen = [(one.start[0], one.string) for one in tokens if one.type == tokenize.COMMENT]
        assert list(comments(text)) == seen


def test_what_is_not_there_is_seen() -> None:
    page, module = ROOT / "DESIGN.md", CODE / "produce" / "task.py"
    good = (
        '[x](docs/settings.md#provenance) `produce/batch.py: shard_of` DESIGN.md, "Tables" '
        "`offsets.runs.Written`"
    )
    assert list(dangling(page, good)) == []
    for text in (
        "[x](docs/none.md)",
        "[x](docs/settings.md#none)",
        "`produce/batch.py: none`",
        "`produce/none.py`",
    ):
        assert len(list(dangling(page, text))) == 1, text
    for text in (
        'DESIGN.md, "None"',
        "`offsets.runs.none`",
        "`mirrorlake.offsets.none`",
        "none.md",
        "DESIGN 3",
        "issue 4",
        "law 5",
    ):
        assert len(list(dangling(module, text))) == 1, text
