"""Each YAML that the pages show is a topology file that is taken, or a part of one."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorlake.config.cluster import Cluster, Landing
from mirrorlake.config.flow import Flow
from mirrorlake.config.lake import Lake, Maintenance
from mirrorlake.config.metrics import Metrics, Tracking
from mirrorlake.config.objectives import Objectives
from mirrorlake.config.security import Security
from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import TopologyError

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "ops").rglob("*.md")])
BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([a-z_.]+): ([^`\n…]+)`")
#: A file that lacks nothing, into which parts are put.
WHOLE: Mapping[str, Any] = {
    "clusters": {
        "east": {"bootstrap_servers": "east:9092"},
        "west": {"bootstrap_servers": "west:9092"},
    },
    "lake": {"path": "s3://bucket/lake"},
    "flows": {"east->west": {}},
}
_TOKEN = {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "token_endpoint": "https://login"}
LOGIN = {**_TOKEN, "client_id": "mirror", "client_secret": "${env:MIRROR_SECRET}"}
#: Where a block of the file is, and whose keys it has.
PLACES = {
    (): Topology,
    ("flows", "east->west"): Flow,
    ("clusters", "west"): Cluster,
    ("clusters", "west", "landing"): Landing,
    ("clusters", "west", "security"): Security,
    ("lake",): Lake,
    ("maintain",): Maintenance,
    ("metrics",): Metrics,
    ("tracking",): Tracking,
    ("objectives",): Objectives,
}
#: Keys of other programs' files that are written as ours are.
THEIRS = {"max_concurrent_runs"}


def keys_of(place: tuple[str, ...]) -> set[str]:
    return {field.alias or name for name, field in PLACES[place].model_fields.items()}


def with_part(part: Mapping[str, Any], place: tuple[str, ...] = ()) -> dict[str, Any]:
    """The whole file, with a part in a block of it."""
    document: dict[str, Any] = yaml.safe_load(yaml.safe_dump(dict(WHOLE)))
    block = document
    for name in place:
        block = block.setdefault(name, dict(LOGIN) if name == "security" else {})
    block.update(part)
    return document


def blocks(text: str) -> Iterator[dict[str, Any]]:
    """The blocks of YAML that are topology files, or parts; one with several `security` is several
    parts."""
    for language, block in BLOCK.findall(text):
        if language != "yaml":
            continue
        for part in re.split(r"^(?=security:)", block, flags=re.MULTILINE):
            document = yaml.safe_load(part)
            if isinstance(document, dict) and "security" in document:
                yield with_part(document, ("clusters", "west"))
            elif isinstance(document, dict) and "steps" not in document:  # those of a workflow
                yield with_part(document)


def inline(text: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The settings in a text, each with the files that it may be meant for."""
    for name, value in INLINE.findall(BLOCK.sub("", text)):
        code = yaml.safe_load(f"{name}: {value}") if value[0] not in "*&" else {}
        block, dot, key = name.partition(".")
        if dot and (block,) in PLACES and key in keys_of((block,)):
            yield f"{name}: {value}", [with_part({key: code[name]}, (block,))]
        elif name not in THEIRS and ("_" in name or any(name in keys_of(at) for at in PLACES)):
            at_most = [with_part(code, place) for place in PLACES if name in keys_of(place)]
            yield f"{name}: {value}", at_most


def refusal(document: Mapping[str, Any], directory: Path) -> str | None:
    file = directory / "mirrorlake.yml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    try:
        load_topology(file)
    except TopologyError as error:
        return str(error)
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_it_is_taken(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [why for block in blocks(text) if (why := refusal(block, tmp_path))] == []
    assert [
        f"{code}: {refused}"
        for code, files in inline(text)
        if all(refused := [refusal(file, tmp_path) for file in files])
    ] == []


def test_what_is_not_taken_is_seen(tmp_path: Path) -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(list(blocks(text))) for text in texts) > 15
    assert sum(len(list(inline(text))) for text in texts) > 50
    (wrong,) = blocks("```yaml\nlake: {paht: ./lake}\n```\n")
    assert "unknown key lake.paht" in str(refusal(wrong, tmp_path))
    ((_, none),) = inline("`sync_topic_acl_enabled: false`")
    ((_, unlike),) = inline("`delivery: at_most_once`")
    assert none == [] and all(refusal(file, tmp_path) for file in unlike)
