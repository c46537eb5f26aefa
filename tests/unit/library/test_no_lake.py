"""What a topology file answers as long as no run has made its lake: nothing that looks like all is
well, and nothing is made."""

from collections.abc import Callable
from pathlib import Path

import pytest

import mirrorlake
from mirrorlake import InputError, LakeError, OpenLake, TopologyError
from mirrorlake.cli.main import CommandEnded, main
from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.starts import note_start
from mirrorlake.library import internals
from mirrorlake.library.doctor import lake_checks
from mirrorlake.run.status import NOT_BEGUN
from tests.support.lake_rows import no_session, write_file


@pytest.fixture
def lake(tmp_path: Path) -> OpenLake:
    write_file(tmp_path, flows={"east->west": {"topics": ["orders"]}})
    return mirrorlake.open(tmp_path / "mirrorlake.yml")


def test_a_status_of_nothing_is_not_healthy(lake: OpenLake, tmp_path: Path) -> None:
    status = lake.status()
    assert not status.healthy and [flow["standing"] for flow in status.flows] == ["never run"]
    (sentence,) = status.attention
    assert f"there is no lake in {tmp_path / 'lake'}; `mirrorlake run` makes" in sentence


def test_where_it_was_read_it_is_there(
    lake: OpenLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store is not asked for that once more."""
    note_start(made(tmp_path), "east->west", "earliest", {})
    asked: list[str] = []
    monkeypatch.setattr(internals, "has_table", lambda _root, table: asked.append(table))
    status = lake.status()
    assert status.healthy and status.attention == [] and not asked


def test_nor_is_one_of_a_lake_in_which_no_flow_has_begun(lake: OpenLake, tmp_path: Path) -> None:
    """As where a run made it and ended, since Spark could not start."""
    made(tmp_path)
    for opened in (lake, mirrorlake.open(path=tmp_path / "lake")):
        status = opened.status()
        assert not status.healthy and status.attention == [NOT_BEGUN]
    write_file(tmp_path, flows={"east->west": {"topics": ["orders"], "enabled": False}})
    assert mirrorlake.open(tmp_path / "mirrorlake.yml").status().healthy, "none is to run"


def test_a_flow_that_has_never_begun_beside_one_that_has_is_named(tmp_path: Path) -> None:
    """As where one of two processes was never started: the status said that nothing needs you."""
    write_file(
        tmp_path, flows={name: {"topics": ["orders"]} for name in ("east->west", "west->east")}
    )
    note_start(made(tmp_path), "east->west", "earliest", {})
    status = mirrorlake.open(tmp_path / "mirrorlake.yml").status()
    (sentence,) = status.warnings
    assert status.healthy and sentence.startswith("flow west->east has never begun: start")
    assert [(flow["flow"], flow["standing"]) for flow in status.flows][1:] == [
        ("west->east", "never run")
    ]


def test_a_misspelt_flow_is_named_where_nothing_is_open(lake: OpenLake, tmp_path: Path) -> None:
    made(tmp_path)
    assert lake.incidents(flow="east->west") == [] == lake.incidents(flow="*")
    for call in (lambda: lake.incidents("east->wets"), lambda: lake.resolve("skip", "east->wets")):
        with pytest.raises(TopologyError, match="did you mean east->west"):
            call()


def test_a_misspelt_column_starts_no_session(lake: OpenLake, tmp_path: Path) -> None:
    made(tmp_path)
    for call in (
        lambda: lake.forget("orders", "ofset < 3"),
        lambda: lake.replay("orders", "ofset < 3", "again"),
    ):
        with pytest.raises(InputError, match="no column ofset; did you mean offset"):
            call()
        assert not lake.internals.session_there


def made(directory: Path) -> Lake:
    return open_lake(no_session, Location(path="./lake"), directory)


@pytest.mark.parametrize(
    "call",
    [
        lambda lake: lake.rows("SELECT * FROM alerts"),
        lambda lake: lake.arrow("SELECT * FROM alerts"),
        lambda lake: lake.flows["east->west"].divergence(),
        lambda lake: lake.translate("east->west", "orders", 0, 5),
        lambda lake: lake.translate_all("east->west", [("orders", 0, 5)]),
        lambda lake: lake.flows["east->west"].trace("orders", 0, 5),
        lambda lake: lake.flows["east->west"].trace("orders", key="ann"),
        lambda lake: lake.incidents(),
        lambda lake: lake.resolve("skip"),
        lambda lake: lake.maintain(),
        lambda lake: lake.maintain(dry_run=True),
        lambda lake: lake.forget("orders", "offset < 5", dry_run=True),
        lambda lake: lake.replay("orders", "offset < 5", "again", dry_run=True),
        lambda lake: lake.replay_parked(dry_run=True),
        lambda lake: lake.restore("east", "west", dry_run=True),
        lambda lake: lake.groups("east->west"),
        lambda lake: lake.failover("east->west"),
        lambda lake: lake.failover("east->west", dry_run=True),
        lambda lake: lake.failback("east->west", drain=False),
        lambda lake: lake.migrate("east->west", "orders"),
        lambda lake: lake.migrate("east->west", "orders", dry_run=True),
        lambda lake: lake.verify(),
        lambda lake: lake.table("records"),
        lambda lake: lake.sql("SELECT 1"),
        lambda lake: lake.flows["east->west"].staged_only(),
    ],
)
def test_what_would_find_nothing_says_why_and_makes_no_lake(
    lake: OpenLake, tmp_path: Path, call: Callable[[OpenLake], object]
) -> None:
    with pytest.raises(LakeError, match="there is no lake in"):
        call(lake)
    assert not (tmp_path / "lake").exists()


def test_what_reads_or_registers_by_spark_makes_none_either(tmp_path: Path) -> None:
    named = {"path": "./lake", "catalog": "spark_catalog", "schema": "here"}
    file = write_file(tmp_path, flows={"east->west": {"topics": ["orders"]}}, lake=named)
    lake = mirrorlake.open(file, engine="spark")
    for call in (lake.register, lake.status, lake.verify):
        with pytest.raises(LakeError, match="there is no lake in"):
            call()
    assert not (tmp_path / "lake").exists() and not lake.internals.session_there


@pytest.mark.parametrize("words", ["plan", "run --once", "status"])
@pytest.mark.parametrize("path", ["./lake", "./lake/below"])
def test_a_file_in_its_place_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, words: str
) -> None:
    file = write_file(tmp_path, lake={"path": path})
    (tmp_path / "lake").write_text("a file")
    with pytest.raises(CommandEnded) as ended:
        main(["-c", str(file), *words.split()])
    sentence = f"the lake cannot be at {tmp_path / path}: {tmp_path / 'lake'} is no folder; choose"
    assert capsys.readouterr().err.startswith(f"mirrorlake: {sentence}")
    assert ended.value.code == 2
    (check,) = lake_checks(mirrorlake.open(file).internals)
    assert check.state == "bad" and sentence in check.sentence


@pytest.mark.parametrize(
    "words",
    [("dashboard", "--html", "page.html"), ("failover", "--flow", "east->west", "--all-groups")],
    ids=lambda words: words[0],
)
def test_a_command_ends_with_the_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_file(tmp_path, flows={"east->west": {"topics": ["orders"]}})
    with pytest.raises(CommandEnded) as ended:
        main(words)
    (sentence,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and sentence.startswith("mirrorlake: there is no lake in")
    assert [path.name for path in tmp_path.iterdir()] == ["mirrorlake.yml"]
