"""The notebooks as Jupyter's: the same cells, without those of a workspace."""

import json
from pathlib import Path

import nbformat
import pytest

from mirrorlake.errors import InputError
from mirrorlake.notebook.jupyter import main, notebook_of, with_widgets

FOLDER = Path(__file__).parents[3] / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))


def cells(source: Path, kind: str) -> list[str]:
    document = notebook_of(source.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == kind]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_each_opens_with_what_it_answers_and_ends_with_what_to_do(source: Path) -> None:
    document = notebook_of(source.read_text(encoding="utf-8"))
    nbformat.validate(nbformat.reads(json.dumps(document), as_version=4))
    told = cells(source, "markdown")
    assert told[0].startswith(f"# {int(source.stem[:2])}. ") and len(told[0]) > 200
    assert document["cells"][-1]["cell_type"] == "markdown" and told[-1].startswith("## Next\n\n")
    code = cells(source, "code")
    assert "open_notebook(" in code[0], "and nothing is installed"
    assert not [cell for cell in code + told if "MAGIC" in cell or cell.startswith("%")]


def test_widgets_get_values() -> None:
    cell = 'nb = open_notebook(\n    globals(), flow="", topic="x"\n)\n'
    given = with_widgets(cell, {"lake": "/a b", "topic": 'o"s'})
    assert given == ('nb = open_notebook(\n    globals(), flow="", topic="o\\"s", lake="/a b")\n')
    alone = with_widgets("nb = open_notebook(globals())", {"lake": "l"})
    assert alone == 'nb = open_notebook(globals(), lake="l")'
    assert with_widgets("nb.display(1)", {"lake": "l"}) == "nb.display(1)"
    with pytest.raises(InputError, match="no widget topci, but lake, flow, topic"):
        with_widgets(cell, {"topci": "x"})


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(tmp_path / "out"), *map(str, SOURCES[:2]), "flow=a->b"]
    assert main(words) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.name for path in written] == [
        "01_quickstart.ipynb",
        "02_investigate_latency.ipynb",
    ]
    assert 'flow=\\"a->b\\"' in written[0].read_text(encoding="utf-8")
    assert main([*words, "topci=x"]) == 2
    assert "no notebook has a widget topci; known: lake, flow" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2


def test_each_gets_the_widgets_that_it_has(tmp_path: Path) -> None:
    """As docs/notebooks.md has people type it: all notebooks, and a topic that some of them ask
    for."""
    assert main([str(tmp_path), *map(str, SOURCES), "lake=/data/lake", "topic=orders"]) == 0
    for source in SOURCES:
        written = (tmp_path / f"{source.stem}.ipynb").read_text(encoding="utf-8")
        assert 'lake=\\"/data/lake\\"' in written
        assert ('topic=\\"orders\\"' in written) is ("topic=" in source.read_text(encoding="utf-8"))
