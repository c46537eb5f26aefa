"""A file that is none of MirrorMaker's is called that, in one sentence with what can be read."""

import json

import pytest

from mirrorlake.errors import InputError
from mirrorlake.mm2.importer.entries import SourceFile
from mirrorlake.mm2.importer.read import import_files
from tests.support.commands import ROOT

READ = "give mm2.properties, connectors as JSON, a resource KafkaMirrorMaker2 of Strimzi"
MM2 = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n"


def refusal(name: str, content: bytes) -> str:
    with pytest.raises(InputError) as caught:
        import_files([SourceFile(name, content)])
    assert caught.value.exit_code == 2 and "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("page", ["README.md", "docs/topologies.md", "docs/notebooks.md"])
def test_text_that_speaks_of_clusters(page: str) -> None:
    """Each has a line that begins with the word."""
    said = refusal(page, (ROOT / page).read_bytes())
    assert said.startswith(f"{page} is no file of MirrorMaker that can be imported: line ")
    assert "begins with clusters, and no key is A->B.enabled" in said and READ in said


@pytest.mark.parametrize("file", ["Makefile", "LICENSE", "ops/kubernetes/deployment.yaml"])
def test_text_of_other_kinds(file: str) -> None:
    said = refusal(file, (ROOT / file).read_bytes())
    assert said.startswith(f"{file} is no file of MirrorMaker that can be imported: it has no key ")
    assert READ in said


def test_json_of_other_programs() -> None:
    said = refusal("values.json", json.dumps({"name": "a", "version": 1}).encode())
    assert "it has no key connector.class" in said and READ in said


def test_our_own_topology_file() -> None:
    text = "clusters:\n  a: {bootstrap_servers: 'a:1'}\nflows:\n  a->b: {topics: [x]}\n"
    said = refusal("mine.yml", text.encode())
    assert said.startswith("mine.yml is a topology file of mirrorlake already")
    assert "`mirrorlake -c mine.yml plan`" in said


def test_bytes() -> None:
    assert refusal("a.png", b"\x89PNG\0\0").startswith("a.png is not a text file; give ")
    said = refusal("mm2.properties", MM2.encode("utf-16"))
    assert said == "mm2.properties is UTF-16, as PowerShell's > writes it; save it as UTF-8"


def test_what_is_wrong_in_a_file_of_mirrormaker_keeps_its_own_sentence() -> None:
    assert "clusters is all there is" in refusal("mm2.properties", MM2.encode())
    one = "clusters =\na.bootstrap.servers = a:1\n"
    assert "must list two clusters" in refusal("mm2.properties", one.encode())
