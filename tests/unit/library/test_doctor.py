"""What `mirrorlake doctor` looks at, one check at a time."""

import json
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import mirrorlake
from mirrorlake.checks.problem import Problem
from mirrorlake.cli.main import app
from mirrorlake.config.topology import Topology
from mirrorlake.errors import ClusterUnreachable, MissingJava
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import place_of
from mirrorlake.library import doctor
from mirrorlake.testing import MemoryCluster

TOPOLOGY = {
    "clusters": {
        alias: {
            "bootstrap_servers": f"{alias}:1",
            "security": {
                "protocol": "SASL_PLAINTEXT",
                "mechanism": "PLAIN",
                "username": "u",
                "password": "hunter2",
            },
        }
        for alias in ("east", "west", "spare")
    },
    "lake": {"path": "./lake"},
    "flows": {"east->west": {}, "west->east": {"delivery": "at_least_once"}},
}


def topology() -> Topology:
    return Topology.model_validate(TOPOLOGY)


def test_each_cluster_of_a_flow_is_asked_whatever_another_says() -> None:
    admins = {alias: MemoryCluster(alias, {"orders": [1]}) for alias in ("east", "west")}
    admins["east"].refusal = ClusterUnreachable("cluster east is silent", alias="east")
    connections = Connections(topology(), admins)
    east, west, _ = doctor.cluster_checks(connections, topology().active_flows())
    assert (east.state, east.sentence) == ("bad", "cluster east is silent")
    assert "has to resolve" in east.fix, "which no login would help"
    assert west.state == "good" and west.sentence.endswith("id-of-west, 1 brokers, 1 topics")


def test_clusters_are_asked_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is silent is waited for, and two are for no longer."""
    both_asked = threading.Barrier(2)

    def cluster_id(cluster: MemoryCluster) -> str:
        both_asked.wait(10)
        raise ClusterUnreachable(f"cluster {cluster.alias} is silent", alias=cluster.alias)

    monkeypatch.setattr(MemoryCluster, "cluster_id", cluster_id)
    admins = {alias: MemoryCluster(alias) for alias in ("east", "west")}
    checks = doctor.cluster_checks(Connections(topology(), admins), topology().active_flows())
    assert [(one.subject, one.state) for one in checks] == [("east", "bad"), ("west", "bad")]


def test_what_plan_finds_is_shown_flow_by_flow() -> None:
    there, back = topology().active_flows()
    may_not = Problem("access", "refuse", (there.name,), "t", "u may not WRITE t", "grant it", "t")
    old = Problem("topic-ids", "note", (there.name, back.name), "west", "no ids")
    checks = list(doctor.right_checks([there, back], [there, back], [may_not, old]))
    assert [(one.check, one.subject, one.state) for one in checks] == [
        ("access", "east->west", "bad"),
        ("topic-ids", "east->west", "note"),
        ("access", "east->west", "note"),
        ("topic-ids", "west->east", "note"),
        ("access", "west->east", "good"),
    ]
    assert checks[0].fix == "grant it" and "which `run` tries" in checks[2].sentence


def test_a_flow_that_sees_no_topic_is_not_called_good() -> None:
    """A principal that may describe none sees as many as there would be in an empty cluster."""
    flows = topology().active_flows()
    checks = doctor.right_checks(flows, flows, [], {"east->west": 0, "west->east": 2})
    found = {(one.subject, one.check): one for one in checks if "not checked" not in one.sentence}
    assert found.keys() == {("east->west", "topics"), ("west->east", "access")}
    assert found["east->west", "topics"].state == "note"
    assert "DESCRIBE" in found["east->west", "topics"].fix
    assert found["west->east", "access"].sentence == "the rights on its 2 topics are there"


def test_a_flow_that_is_refused_before_its_rights_are_asked_for_has_none() -> None:
    (there, _) = topology().active_flows()
    same = Problem("same-cluster", "refuse", (there.name,), "id", "one cluster", "another address")
    (check,) = doctor.right_checks([there], [there], [same])
    assert (check.check, check.state) == ("same-cluster", "bad")


def examined_with(
    lake: Mapping[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    planned: Sequence[Mapping[str, object]] = (),
) -> list[doctor.Check]:
    """All checks of a topology with two clusters that answer, whose plan is of one note and these
    flows."""
    config = tmp_path / "mirrorlake.yml"
    config.write_text(json.dumps({**TOPOLOGY, "lake": lake}), encoding="utf-8")
    admins = {alias: MemoryCluster(alias, {"orders": [1]}) for alias in ("east", "west")}
    monkeypatch.setattr(
        "mirrorlake.library.internals.Connections", lambda known: Connections(known, admins)
    )

    def make_plan(*asked: object, **_named: object) -> dict[str, object]:
        """As the real one, it asks the lake, if it gets one."""
        for reader in asked:
            if isinstance(reader, DuckLake):
                reader.table_rows("records")
        note = Problem("topic-ids", "note", ("east->west",), "west", "no ids")
        return {"clusters": {}, "flows": planned, "problems": [vars(note)], "totals": {}}

    monkeypatch.setattr("mirrorlake.library.planning.make_plan", make_plan)
    monkeypatch.setattr("mirrorlake.run.plan.make_plan", make_plan)
    return doctor.examined(mirrorlake.open(config).internals)


def test_a_flow_of_which_a_cluster_is_silent_when_it_is_planned_is_not_called_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answered a moment before: nothing is known of the flow's topics, nor of its rights."""
    silent = {"flow": "east->west", "unasked": "cluster west is silent", "topics": []}
    checks = examined_with({"path": "./lake"}, tmp_path, monkeypatch, [silent])
    found = [(one.check, one.state, one.sentence) for one in checks if one.subject == "east->west"]
    assert found == [
        ("topic-ids", "note", "no ids"),
        ("cluster", "bad", "not checked: cluster west is silent"),
    ]


def test_where_no_flow_is_enabled_it_says_that_no_cluster_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TOPOLOGY, "flows", {"east->west": {"enabled": False}})
    found = {one.check: one for one in examined_with({"path": "./lake"}, tmp_path, monkeypatch)}
    assert "cluster" not in found and found["flow"].state == "note"
    assert "no cluster was asked" in found["flow"].sentence


def test_a_lake_that_cannot_be_reached_leaves_the_other_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_GIVEN", raising=False)
    secret = {"aws_secret_access_key": "${env:NOT_GIVEN}"}
    lake = {"path": "s3://bucket/lake", "storage": secret}
    found = {(one.check, one.subject): one for one in examined_with(lake, tmp_path, monkeypatch)}
    assert "NOT_GIVEN is not set" in found["lake", "s3://bucket/lake"].sentence
    assert found["topic-ids", "east->west"].state == "note"
    assert found["access", "west->east"].state == "good"


def test_a_table_of_the_lake_that_does_not_open_is_a_check_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in TABLES:
        PathTables(tmp_path / "lake").create(table)
    commit = tmp_path / "lake" / "records" / "_delta_log" / f"{0:020d}.json"
    commit.write_bytes(commit.read_bytes()[:50])
    found = {
        (one.check, one.subject): one
        for one in examined_with({"path": "./lake"}, tmp_path, monkeypatch)
    }
    readable = found["lake is readable", str(tmp_path / "lake")]
    assert readable.state == "bad" and readable.fix
    assert found["topic-ids", "east->west"].state == "note"


def test_a_flow_with_a_silent_end_is_not_called_good() -> None:
    (check, _) = doctor.right_checks(topology().active_flows(), [], [])
    assert (check.state, check.subject) == ("bad", "east->west")


class Usage(NamedTuple):
    free: int


@pytest.mark.parametrize(
    ("free", "state"), [(1 << 29, "bad"), (5 << 30, "note"), (50 << 30, "good")]
)
def test_room_on_the_disk_of_the_lake(
    free: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: Usage(free))
    (room,) = doctor.folder_checks(place_of(tmp_path / "not" / "yet"), "lake")
    assert room.state == state and bool(room.fix) is (state != "good")
    assert f"{free / (1 << 30):.1f} GB are free" in room.sentence


def test_room_for_files_on_the_disk_of_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Disk(NamedTuple):
        f_files: int
        f_favail: int

    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: Usage(50 << 30))
    found = []
    for total, left in ((0, 0), (1 << 24, 1 << 23), (1 << 24, 500_000), (1 << 24, 9)):
        monkeypatch.setattr(doctor.os, "statvfs", lambda _, t=total, left=left: Disk(t, left))
        checks = doctor.folder_checks(place_of(tmp_path), "lake")
        found.append([one.state for one in checks if "files" in one.sentence])
    assert found == [[], [], ["note"], ["bad"]]


def test_brokers_that_are_named_by_an_address_that_nobody_reaches() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = listening.getsockname()
        (good,) = doctor.broker_checks("east", [there])
        (bad,) = doctor.broker_checks("east", [there, ("nowhere.invalid", 9092)])
    assert (good.check, good.state, bad.state) == ("ports", "good", "bad")
    assert "1 of 2 brokers" in bad.sentence and "nowhere.invalid:9092 (" in bad.sentence
    assert str(there[1]) not in bad.sentence and "advertised.listeners" in bad.fix


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "access", lambda folder, mode: False)
    writable, _ = doctor.folder_checks(place_of(tmp_path), "lake")
    assert writable.state == "bad" and f"may not write into {tmp_path}" in writable.sentence


def test_what_is_missing_here_is_a_note_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise MissingJava("install one")

    monkeypatch.setattr(doctor, "native_problem", lambda: "no file for this platform")
    monkeypatch.setattr(doctor, "find_java", none)
    monkeypatch.setattr(doctor, "session_is_given", lambda: False)
    monkeypatch.setattr(doctor, "installed", lambda extra: False)
    found = {one.check: one for one in doctor.program_checks()}
    assert "no file for this platform" in found["native part"].sentence
    assert found["java"].fix == "install one"
    assert "pip install 'mirrorlake[spark]'" in found["spark"].sentence
    assert {one.state for one in found.values()} == {"good", "note"}


def test_the_command_fails_with_a_check_and_shows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "mirrorlake.yml"
    config.write_text(json.dumps(TOPOLOGY), encoding="utf-8")
    silent = {}
    for alias in ("east", "west"):
        silent[alias] = MemoryCluster(alias)
        silent[alias].refusal = ClusterUnreachable(f"cluster {alias} is silent", alias=alias)
    monkeypatch.setattr(
        "mirrorlake.library.internals.Connections", lambda known: Connections(known, silent)
    )
    done = CliRunner().invoke(app, ["-c", str(config), "doctor", "--json"])
    assert done.exit_code == 1, done.output
    document = json.loads(done.stdout)
    found = {(one["check"], one["subject"]): one["state"] for one in document["checks"]}
    assert not document["healthy"] and found["cluster", "east"] == found["cluster", "west"] == "bad"
    assert found["lake", str(tmp_path / "lake")] == "good" and ("cluster", "spare") not in found
    shown = CliRunner().invoke(app, ["-c", str(config), "doctor"])
    assert "BAD   cluster, east: cluster east is silent" in shown.output
    assert "hunter2" not in done.output + shown.output
    assert not (tmp_path / "lake").exists()


def test_an_address_with_a_secret_is_shown_without_it(tmp_path: Path) -> None:
    lake = {"path": "s3://user:hunter2@bucket/lake?sig=hunter2", "storage": {"aws_region": "x"}}
    config = tmp_path / "mirrorlake.yml"
    config.write_text(json.dumps({**TOPOLOGY, "lake": lake}), encoding="utf-8")
    checks = list(doctor.lake_checks(mirrorlake.open(config).internals))
    assert checks and "hunter2" not in str(checks)
