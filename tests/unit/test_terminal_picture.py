"""docs/terminal.svg, what README shows of a terminal: how it is made, and what it must not hold."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.support.docs_scripts import docs_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def make_terminal() -> ModuleType:
    return docs_script("make_terminal")


def test_lines_that_were_drawn_again_are_shown_once(make_terminal: ModuleType) -> None:
    written = (
        "begins\r\n\x1b[?25lflow a\r\nlag 9\r\x1b[2K\x1b[1A\x1b[2Kflow a\r\n\x1b[31mlag 0\x1b[0m"
    )
    assert make_terminal.screen(written) == ["begins", "flow a", "\x1b[31mlag 0\x1b[0m"]
    assert make_terminal.screen("x\r\n \r\n\r\n") == ["x"]


def test_a_picture_fetches_nothing(make_terminal: ModuleType) -> None:
    picture = make_terminal.drawn([("status", ["\x1b[31m<b>late</b>\x1b[0m", "fine"])])
    assert "@font-face" not in picture and "status" in picture
    assert "&lt;b&gt;late" in picture.replace("&#160;", " ")


def test_what_is_there_is_shown_by_the_readme_and_fetches_nothing() -> None:
    picture = (ROOT / "docs" / "terminal.svg").read_text(encoding="utf-8")
    assert "(docs/terminal.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(picture) < 200_000 and "url(http" not in picture and "@font-face" not in picture
    assert "mirrorlake" in picture and "Traceback" not in picture
