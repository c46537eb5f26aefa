"""The files of docs/topologies.md can be run, and each cluster gets what the page says."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from mirrorlake.checks.rules import check_flows
from mirrorlake.config.topology import Topology, load_topology

PAGE = (Path(__file__).parents[3] / "docs" / "topologies.md").read_text(encoding="utf-8")
SECTIONS = {
    title: text
    for title, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    if "```yaml topology" in text
}


def load(text: str, directory: Path) -> Topology:
    (found,) = re.findall(r"```yaml topology\n(.*?)```", text, re.DOTALL)
    file = directory / "mirrorlake.yml"
    file.write_text(found, encoding="utf-8")
    return load_topology(file)


def table(text: str) -> dict[str, tuple[set[str], set[str]]]:
    """By cluster: the topics that it has of its own, and those that it gets."""
    rows = re.findall(r"^\| (\w+) \|(.*)\|(.*)\|$", text.partition("|---|")[2], re.MULTILINE)
    return {
        name: (set(re.findall(r"`(.+?)`", own)), set(re.findall(r"`(.+?)`", got)))
        for name, own, got in rows
    }


def spread(topology: Topology, own: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """All topics of each cluster, once the flows have nothing left to make."""
    there = {name: set(topics) for name, topics in own.items()}
    while True:
        made = [
            (flow.target, flow.target_topic(topic))
            for flow in topology.active_flows()
            for topic in there[flow.source]
            if flow.selection.selects(topic) and flow.target_topic(topic) not in there[flow.target]
        ]
        if not made:
            return there
        for cluster, topic in made:
            there[cluster].add(topic)


def test_there_are_six() -> None:
    assert list(SECTIONS) == [
        "Active/passive",
        "Active/active",
        "Hub",
        "Chain",
        "Three clusters",
        "Fan-out",
    ]


@pytest.mark.parametrize("title", SECTIONS)
def test_each_file_runs_and_gives_what_the_page_says(title: str, tmp_path: Path) -> None:
    topology, said = load(SECTIONS[title], tmp_path), table(SECTIONS[title])
    assert set(said) == set(topology.clusters)
    own = {name: topics for name, (topics, _) in said.items()}
    assert spread(topology, own) == {name: topics | got for name, (topics, got) in said.items()}
    ids = {name: f"id-{name}" for name in topology.clusters}
    brokers = dict.fromkeys(topology.clusters, 3)
    assert check_flows(topology.active_flows(), ids, own, None, brokers) == []


def test_the_alternatives_in_the_text_are_allowed_too(tmp_path: Path) -> None:
    (defaults,) = re.findall(r"`defaults: (\{.*?policy: identity.*?\})`", SECTIONS["Active/active"])
    topology = load(SECTIONS["Active/active"], tmp_path)
    document = yaml.safe_load((tmp_path / "mirrorlake.yml").read_text(encoding="utf-8"))
    both = Topology.model_validate({**document, "defaults": yaml.safe_load(defaults)})
    ids = {name: f"id-{name}" for name in topology.clusters}
    assert check_flows(both.active_flows(), ids, {"east": ["orders"], "west": ["orders"]}) == []
    hub = load(SECTIONS["Hub"], tmp_path)
    merged = hub.model_copy(
        update={
            "flows": {
                name: flow.model_copy(update={"policy": "identity"})
                for name, flow in hub.flows.items()
            }
        }
    )
    ids = {name: f"id-{name}" for name in hub.clusters}
    notes = check_flows(
        merged.active_flows(), ids, dict.fromkeys(("north", "south", "east"), ["orders"])
    )
    assert {(note.rule, note.severity) for note in notes} == {("fan-in", "note")}
