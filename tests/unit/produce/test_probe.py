"""Opening files of the stage in a process of its own: whatever happens there is an answer, nobody
else dies of it."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirrorlake.errors import FilesUnreadable
from mirrorlake.produce.batch import ShardPlan
from mirrorlake.produce.probe import why_unreadable
from mirrorlake.produce.stage_files import read_shard

#: Arrow's Azure client looks for credentials, finds none, and ends the process by an exception that
#: nobody catches.
DEADLY = "abfss://container@account.dfs.core.windows.net/part-0.parquet"
#: An address that refuses connections.
REFUSED = "s3://bucket/part-0.parquet?scheme=http&endpoint_override=127.0.0.1:9&region=here"


@pytest.fixture(autouse=True)
def nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")


def test_files_that_can_be_opened_and_one_that_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "part 0.parquet"
    pq.write_table(pa.table({"offset": [1]}), path)
    assert why_unreadable(path.as_uri()) is None
    path.unlink()
    assert why_unreadable(path.as_uri()) is None  # which says nothing about the others


def test_one_that_is_no_parquet_and_a_scheme_that_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "part-0.parquet"
    path.write_bytes(b"nothing of the kind")
    assert "ArrowInvalid" in (why_unreadable(str(path)) or "")
    assert "s3n" in (why_unreadable("s3n://bucket/part-0.parquet") or "")


def test_one_that_kills_the_process_that_opens_it() -> None:
    code = f"from mirrorlake.lake.parquet import open_parquet; open_parquet({DEADLY!r})"
    alone = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    if alone.returncode >= 0:
        pytest.skip("this version of Arrow survives it")
    assert "SIGABRT" in (why_unreadable(DEADLY) or "")


def test_one_that_cannot_be_reached() -> None:
    assert "OSError" in (why_unreadable(REFUSED) or "")


def test_one_that_never_answers() -> None:
    assert why_unreadable(REFUSED, 0.01) == "no answer within 0 s"


@pytest.mark.parametrize(
    "uri",
    [
        "s3n://bucket/part-0.parquet",
        pytest.param(REFUSED, marks=pytest.mark.wide("test_one_that_cannot_be_reached")),
    ],
)
def test_a_task_says_so_in_one_error(uri: str) -> None:
    with pytest.raises(FilesUnreadable, match=uri.split("?")[0]):
        next(read_shard(ShardPlan(0, (), (uri,), 0), {}))


def test_a_task_tells_what_is_gone_from_what_it_cannot_open(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(read_shard(ShardPlan(0, (), (str(tmp_path / "gone.parquet"),), 0), {}))
