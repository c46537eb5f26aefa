"""Credentials that a workspace lends for the place of a lake, asked for by Databricks' own SDK."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import LakeError
from mirrorlake.lake import unity_catalog
from mirrorlake.lake.folder import lake_place
from tests.support.lending_workspace import Workspace, lending_workspace

AWS = {"access_key_id": "AK", "secret_access_key": "s3cret", "session_token": "token"}
WORDS = [
    (
        "s3://bucket/lake",
        {"aws_temp_credentials": AWS},
        {"aws_access_key_id": "AK", "aws_secret_access_key": "s3cret"}
        | {"aws_session_token": "token"},
    ),
    (
        "abfss://lake@account.dfs.core.windows.net/lake",
        {"azure_user_delegation_sas": {"sas_token": "sig=s3cret"}},
        {"azure_storage_sas_token": "sig=s3cret"},
    ),
    (
        "abfss://lake@account.dfs.core.windows.net/lake",
        {"azure_aad": {"aad_token": "s3cret"}},
        {"azure_storage_token": "s3cret"},
    ),
]


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    unity_catalog._lent_options.cache_clear()
    with lending_workspace() as workspace:
        for name, value in workspace.environment.items():
            monkeypatch.setenv(name, value)
        yield workspace


def lent(**answer: Any) -> tuple[int, dict[str, Any]]:
    return 200, {**answer, "expiration_time": int((time.time() + 3_600) * 1_000)}


@pytest.mark.parametrize(("url", "answer", "options"), WORDS, ids=["S3", "SAS", "Entra"])
def test_what_is_lent_goes_to_the_store_in_its_words(
    workspace: Workspace, tmp_path: Path, url: str, answer: Any, options: dict[str, str]
) -> None:
    workspace.answers = [lent(**answer)]
    location = Location(path=f"{url}/", credentials="unity_catalog", storage={"region": "eu"})
    place = lake_place(location, tmp_path)
    assert place.in_store and workspace.asked == [], "it is asked when it is needed"
    for each in (place, place / "records", lake_place(location, tmp_path)):
        assert each.options == {"region": "eu", **options}
    ((path, body),) = workspace.asked
    assert path.endswith("/unity-catalog/temporary-path-credentials")
    assert body == {"url": url, "operation": "PATH_READ_WRITE"}
    assert "s3cret" not in repr(place)


def test_who_may_only_read_gets_that(workspace: Workspace, tmp_path: Path) -> None:
    denied = (403, {"error_code": "PERMISSION_DENIED", "message": "no EXTERNAL USE LOCATION"})
    workspace.answers = [denied, lent(aws_temp_credentials=AWS)]
    options = lake_place(Location(path=WORDS[0][0], credentials="unity_catalog"), tmp_path).options
    assert options == WORDS[0][2]
    assert [body["operation"] for _, body in workspace.asked] == ["PATH_READ_WRITE", "PATH_READ"]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([(403, {"error_code": "PERMISSION_DENIED", "message": "no grant"})] * 2, "no grant"),
        ([lent(gcp_oauth_token={"oauth_token": "s3cret"})], "those of S3 and Azure can"),
        ([lent()], "those of S3 and Azure can"),
    ],
    ids=["denied", "another kind", "none"],
)
def test_where_none_are_lent_one_sentence_says_what_to_do(
    workspace: Workspace, tmp_path: Path, answers: list[Any], words: str
) -> None:
    workspace.answers = answers * 2
    place = lake_place(Location(path=WORDS[0][0], credentials="unity_catalog"), tmp_path)
    with pytest.raises(LakeError, match=words) as refused:
        assert place.options
    assert "s3cret" not in str(refused.value) and "lake.credentials" in str(refused.value)
    with pytest.raises(OSError, match=words):  # as for what else the store refuses
        place.read()


def test_outside_of_a_workspace_it_is_said_which_one_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unity_catalog._lent_options.cache_clear()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    place = lake_place(Location(path=WORDS[0][0], credentials="unity_catalog"), tmp_path)
    with pytest.raises(LakeError, match="lends no credentials .* DATABRICKS_HOST"):
        assert place.options


@pytest.mark.parametrize("document", [{"path": "./lake"}, {"catalog": "main", "schema": "s"}])
def test_they_are_of_a_store_alone(document: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="credentials are for a path that is a URL"):
        Location(**document, credentials="unity_catalog")  # type: ignore[arg-type]
