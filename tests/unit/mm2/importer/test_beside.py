"""What runs beside MirrorMaker 2 never writes into what that writes, and neither carries what the
other wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.config.topology import Topology
from mirrorlake.errors import InputError
from mirrorlake.mm2.importer.entries import SourceFile
from mirrorlake.mm2.importer.mirrormaker1 import Options
from mirrorlake.mm2.importer.read import Imported, import_files

ALIASES = ("a", "b", "c")
BASE = "clusters = a, b, c\n" + "".join(
    f"{alias}.bootstrap.servers = {alias}:1\n" for alias in ALIASES
)


def beside(text: str) -> Imported:
    return import_files([SourceFile("mm2.properties", (BASE + text).encode())], beside=True)


def written(
    found: Imported, separator: str, topics: dict[str, set[str]]
) -> tuple[dict[str, set[str]], ...]:
    """What MirrorMaker 2 and what mirrorlake write to each cluster, hop by hop, each seeing what
    the other wrote."""
    topology = Topology.model_validate(found.topology)
    flows = [topology.flow(name) for name in topology.flows]
    there = {alias: set(topics[alias]) for alias in ALIASES}
    theirs, ours = ({alias: set[str]() for alias in ALIASES} for _ in range(2))
    for _ in range(4):
        for flow in flows:
            for topic in sorted(there[flow.source]):
                if "internal" in topic or topic.endswith("heartbeats"):
                    continue
                if not set(topic.split(separator)[:-1]) & {flow.target}:
                    theirs[flow.target].add(f"{flow.source}{separator}{topic}")
                if flow.selection.selects(topic):
                    ours[flow.target].add(flow.target_topic(topic))
        for alias in ALIASES:
            there[alias] |= theirs[alias] | ours[alias]
    return theirs, ours


@given(
    st.sampled_from([".", "_", "-"]),
    st.lists(st.sampled_from(["a->b", "b->a", "b->c", "c->a"]), min_size=1, unique=True),
    st.sets(st.sampled_from(["orders", "orders.v1", "a.b", "x-y_z", "team.a.orders"]), min_size=1),
)
def test_neither_touches_what_the_other_wrote(
    separator: str, flows: list[str], topics: set[str]
) -> None:
    text = f"replication.policy.separator = {separator}\n" + "".join(
        f"{flow}.enabled = true\n" for flow in flows
    )
    text += "emit.heartbeats.enabled = false\n"
    theirs, ours = written(beside(text), separator, dict.fromkeys(ALIASES, topics))
    for alias in ALIASES:
        assert theirs[alias].isdisjoint(ours[alias])
        for name in ours[alias]:
            assert f"{separator}mirrorlake{separator}" in name
            parts = name.split(f"{separator}mirrorlake{separator}")
            assert parts[-1] in topics and set(parts[:-1]) <= set(ALIASES), (
                f"{name} carries a copy of MirrorMaker 2"
            )


def test_what_it_chooses_and_says() -> None:
    found = beside(
        "a->b.enabled = true\na->b.topics = orders.*\nsync.group.offsets.enabled = true\n"
    )
    flow = Topology.model_validate(found.topology).flow("a->b")
    assert flow.target_topic("orders") == "a.mirrorlake.orders"
    settings = flow.settings
    assert not settings.sync_group_offsets_enabled and not settings.emit_heartbeats_enabled
    assert not settings.emit_checkpoints_enabled
    assert [
        flow.selection.selects(name)
        for name in ("orders", "heartbeats", "a.orders", "mm2-configs.b.internal")
    ] == [True, *[False] * 3]
    every = Topology.model_validate(beside("a->b.enabled = true\n").topology).flow("a->b")
    users = ("device.heartbeats", "mycheckpoints.internal")
    assert [*map(every.selection.selects, users)] == [True, True], "topics of users"
    others = ("heartbeats", "c.heartbeats", "b.c.heartbeats", "c.checkpoints.internal")
    assert not any(map(every.selection.selects, others))
    notes = "\n".join(found.report["notes"])
    for said in (
        "a.mirrorlake.orders on b",
        "MirrorMaker 2 writes a.orders",
        "--copies '{source}.{topic}'",
    ):
        assert said in notes
    assert "stop MirrorMaker first" not in notes and "topics.exclude" not in notes


def test_under_the_identity_policy() -> None:
    found = beside(
        "replication.policy.class = x.IdentityReplicationPolicy\na->b.enabled = true\nb->a.enabled "
        "= true\n"
    )
    flow = Topology.model_validate(found.topology).flow("b->a")
    assert flow.target_topic("orders") == "b.mirrorlake.orders"
    assert not flow.selection.selects("a.mirrorlake.orders"), (
        "which MirrorMaker 2 may have brought back"
    )
    notes = "\n".join(found.report["notes"])
    assert "--copies '{topic}'" in notes and "topics.exclude" in notes and "mixed" in notes


def test_where_there_are_no_such_names() -> None:
    with pytest.raises(InputError, match="too long"):
        beside("a->b.enabled = true\nreplication.policy.separator = ....\n")
    with pytest.raises(InputError, match="no flow"):
        beside("a->b.enabled = false\n")
    files = [
        SourceFile("consumer", b"bootstrap.servers=x:1"),
        SourceFile("producer", b"bootstrap.servers=y:1"),
    ]
    with pytest.raises(InputError, match="MirrorMaker 1"):
        import_files(files, Options(whitelist="x"), beside=True)


def test_who_goes_on_to_write_offset_syncs_is_not_told_that_we_write_none() -> None:
    notes = beside("a->b.enabled = true\n").report["notes"]
    assert not [note for note in notes if "offset_syncs" in note]
