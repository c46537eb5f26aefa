"""A query's checkpoint read from its folder, and its positions put to the one law of
translation."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mirrorlake.cli.main import app
from mirrorlake.config.flow import Flow
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import InputError, LakeError
from mirrorlake.failover import query_checkpoint
from mirrorlake.failover.query_checkpoint import TranslatedQuery, read_checkpoint, translate_query
from mirrorlake.groups import route_sides
from mirrorlake.lake.other_logs import OtherLogs
from mirrorlake.lake.translate import TopicPartitionOffset
from mirrorlake.library.internals import Internals
from mirrorlake.naming.naming import Naming
from mirrorlake.offsets.positions import Translated
from mirrorlake.spark.query_files import QueryPosition

FLOW = ResolvedFlow(
    "east->west", "east", "west", Flow(), Naming("default", "east", frozenset({"east", "west"}))
)


def fill(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


def batch(*sources: str) -> str:
    return "\n".join(["v1", '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}', *sources])


def checkpoint(root: Path) -> Path:
    """A checkpoint whose batch 2 is under way, with the files that Spark leaves beside its own."""
    return fill(
        root,
        {
            "metadata": '{"id":"x"}',
            "offsets/1": batch('{"orders":{"0":5,"1":7}}', '{"payments":{"0":1}}'),
            "offsets/2": batch('{"orders":{"0":50,"1":70}}', '{"payments":{"0":10}}'),
            "offsets/.2.crc": "crc",
            "offsets/.3.9f.tmp": "half",
            "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
            "commits/1": 'v1\n{"nextBatchWatermarkMs":0}',
            "commits/.1.crc": "crc",
            "sources/0/0": '\0v1\n{"orders":{"0":0,"1":0}}',
            "sources/1/0": '\0v1\n{"payments":{"0":0}}',
        },
    )


def test_only_the_last_committed_batch_counts(tmp_path: Path) -> None:
    found = read_checkpoint(checkpoint(tmp_path))
    assert found == QueryPosition(
        1, {0: {("orders", 0): 5, ("orders", 1): 7}, 1: {("payments", 0): 1}}
    )


def test_before_the_first_commit_a_query_goes_on_where_it_began(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {"offsets/0": batch('{"orders":{"0":50}}'), "sources/0/0": '\0v1\n{"orders":{"0":3}}'},
    )
    assert read_checkpoint(tmp_path) == QueryPosition(None, {0: {("orders", 0): 3}})


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no folder `offsets`"),
        ({"_delta_log/0.json": "{}"}, "no folder `offsets`"),
        ({"offsets/.0.crc": "x"}, "no offsets"),
        ({"offsets/1": batch('{"t":{"0":1}}'), "commits/0": "v1\n{}"}, "batch 0"),
        ({"offsets/0": "v2\n{}", "commits/0": "v1\n{}"}, "'v2'"),
        ({"offsets/0": batch('{"logOffset":1}'), "commits/0": "v1\n{}"}, "reads Kafka"),
        (
            {
                "offsets/0": "\udc80".encode("utf-8", "surrogatepass").decode("latin-1"),
                "commits/0": "v1",
            },
            "'v1'",
        ),
    ],
)
def test_another_folder_is_refused_in_one_sentence(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    fill(tmp_path, files)
    with pytest.raises(InputError, match=said) as raised:
        read_checkpoint(tmp_path)
    assert str(tmp_path) in str(raised.value) and "\n" not in str(raised.value)


@pytest.fixture
def law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for the law: offsets are 1000 more on west; partition 8 is not there yet, 9 was never
    seen; the flow goes on without what partition 7 has."""

    def translate_all(
        lake: object, flow: str, asked: Iterable[TopicPartitionOffset], reverse: bool
    ) -> dict[TopicPartitionOffset, Translated]:
        asked = list(asked)
        assert all(offset >= 0 for _, _, offset in asked)
        step = -1000 if reverse else 1000
        return {
            (topic, partition, offset): Translated(
                topic.removeprefix("east.") if reverse else f"east.{topic}",
                partition,
                offset + step,
                partition != 8,
            )
            for topic, partition, offset in asked
            if partition != 9
        }

    def with_passed_over(
        _lake: object, _flow: str, known: Mapping[TopicPartitionOffset, Translated]
    ) -> dict[TopicPartitionOffset, Translated]:
        return {key: replace(one, gone=5 if key[1] == 7 else 0) for key, one in known.items()}

    monkeypatch.setattr(route_sides, "translate_living", translate_all)
    monkeypatch.setattr(route_sides, "with_passed_over", with_passed_over)
    others = OtherLogs("east", frozenset({"again"}), {("back", 0): 2500})
    monkeypatch.setattr(query_checkpoint, "other_logs", lambda *_: others)


def translated(query: QueryPosition, reverse: bool = False) -> TranslatedQuery:
    topology: Any = SimpleNamespace(flows={FLOW.name: FLOW})
    return translate_query(None, topology, FLOW, query, reverse)  # type: ignore[arg-type]


@pytest.mark.usefixtures("law")
@pytest.mark.parametrize("reverse", [False, True])
def test_both_directions_and_every_source(reverse: bool) -> None:
    here, there = ("east.t", "t") if reverse else ("t", "east.t")
    step = -1000 if reverse else 1000
    query = QueryPosition(
        1, {0: {(here, 0): 2000}, 3: {(here, 0): 3000, (here, 1): -2, (here, 2): -1}}
    )
    answer = translated(query, reverse)
    assert answer.positions == {
        0: {(there, 0): 2000 + step},
        3: {(there, 0): 3000 + step, (there, 1): -2, (there, 2): -1},
    }
    assert answer.problems == []


@pytest.mark.usefixtures("law")
def test_what_cannot_be_translated_is_named() -> None:
    query = QueryPosition(1, {0: {("t", 0): 1, ("t", 8): 2, ("t", 9): 3}})
    answer = translated(query)
    assert answer.positions == {0: {("east.t", 0): 1001, ("east.t", 8): 1002}}, (
        "8: the highest safe position"
    )
    assert [(item.partition, item.offset) for item in answer.problems] == [(8, 2), (9, 3)]
    assert (
        "1002" in answer.problems[0].reason
        and "never seen partition 9" in answer.problems[1].reason
    )
    (problem,) = translated(QueryPosition(1, {0: {("t", 7): 4}})).problems
    assert "up to 5 records are not there" in problem.reason
    (problem,) = translated(QueryPosition(1, {0: {("other", 0): -2}}), True).problems
    assert "never seen" in problem.reason


@pytest.mark.usefixtures("law")
@pytest.mark.parametrize("reverse", [False, True])
def test_a_position_in_a_topic_that_was_made_again_is_of_another_log(reverse: bool) -> None:
    """No operator has decided, so the map knows the one before alone."""
    here = "east.again" if reverse else "again"
    query = QueryPosition(1, {0: {(here, 0): 2000, (here, 1): -2, (here, 2): -1}})
    (problem,) = translated(query, reverse).problems
    assert problem.offset == 2000 and "topic again: it was made again" in problem.reason


@pytest.mark.usefixtures("law")
@pytest.mark.parametrize("reverse", [False, True])
def test_a_position_behind_where_a_log_went_back_is_of_another_log(reverse: bool) -> None:
    here, first = ("east.back", 3500) if reverse else ("back", 2500)
    query = QueryPosition(1, {0: {(here, 0): first}, 1: {(here, 0): first + 1}})
    (problem,) = translated(query, reverse).problems
    assert (problem.source, problem.offset) == (1, first + 1)
    assert "back-0: its log went back" in problem.reason


def command(root: Path, directory: Path, *flags: str) -> Result:
    """`mirrorlake translate-checkpoint`."""
    document = {
        "clusters": {
            "east": {"bootstrap_servers": "127.0.0.1:9"},
            "west": {"bootstrap_servers": "127.0.0.1:9"},
        },
        "lake": {"path": "lake"},
        "flows": {FLOW.name: {}},
    }
    file = fill(root, {"mirrorlake.yml": json.dumps(document)}) / "mirrorlake.yml"
    arguments = [
        "-c",
        str(file),
        "translate-checkpoint",
        str(directory),
        "--flow",
        FLOW.name,
        *flags,
    ]
    return CliRunner().invoke(app, arguments)


@pytest.mark.usefixtures("law")
def test_the_command_answers_a_line_for_each_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Internals, "tables", None)
    monkeypatch.setattr(Internals, "check_there", lambda _: None)
    whole = checkpoint(tmp_path / "query")
    result = command(tmp_path, whole)
    assert result.stdout.splitlines() == [
        '{"east.orders":{"0":1005,"1":1007}}',
        '{"east.payments":{"0":1001}}',
    ]
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(command(tmp_path, whole, "--json").stdout) == {
        "flow": "east->west",
        "batch": 1,
        "sources": [
            {"source": 0, "starting_offsets": {"east.orders": {"0": 1005, "1": 1007}}},
            {"source": 1, "starting_offsets": {"east.payments": {"0": 1001}}},
        ],
        "problems": [],
    }


@pytest.mark.usefixtures("law")
def test_the_command_names_what_it_could_not_translate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Internals, "tables", None)
    monkeypatch.setattr(Internals, "check_there", lambda _: None)
    text = batch('{"orders":{"0":5,"9":7}}')
    broken = fill(tmp_path / "query", {"offsets/0": text, "commits/0": "v1\n{}"})
    result = command(tmp_path, broken, "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["sources"][0]["starting_offsets"]) == (
        1,
        {"east.orders": {"0": 1005}},
    )
    (problem,) = document["problems"]
    assert "never seen partition 9" in problem.pop("reason")
    assert problem == {"source": 0, "topic": "orders", "partition": 9, "offset": 7}
    result = command(tmp_path, broken)
    assert (result.exit_code, result.stdout) == (1, '{"east.orders":{"0":1005}}\n')


def test_without_a_lake_it_says_so(tmp_path: Path) -> None:
    """It named each partition as one that the flow had never seen."""
    result = command(tmp_path, checkpoint(tmp_path / "query"))
    assert isinstance(result.exception, LakeError) and not (tmp_path / "lake").exists()


@pytest.mark.parametrize("flags", [(), ("--json",), ("--reverse",)])
def test_a_wrong_folder_is_told_before_spark_starts(tmp_path: Path, flags: tuple[str, ...]) -> None:
    result = command(tmp_path, tmp_path / "nothing", *flags)
    assert isinstance(result.exception, InputError) and result.exception.exit_code == 2
    assert not (tmp_path / "lake").exists()
