"""Which sessions need Delta's jar: those by which Spark reads or writes tables itself."""

import json
from pathlib import Path

import pytest

import mirrorlake
from mirrorlake.config.lake import Lake as Location
from mirrorlake.lake.opening import open_lake
from mirrorlake.library import internals
from mirrorlake.library.internals import Internals
from tests.support.lake_rows import no_session, write_file
from tests.support.object_store import KEY, SECRET, Store
from tests.support.store_link import link_to

FOLDER = Location(path="./lake")
CATALOG = Location(catalog="main", schema="mirror", checkpoints="/tmp/none")  # type: ignore[call-arg]


def needed(
    directory: Path, location: Location = FOLDER, engine: str | None = None, by_files: bool = True
) -> bool:
    known = Internals(location, directory=directory, engine=engine)
    if by_files:
        known.in_a_command()
    return known._needs_delta()


def test_a_command_needs_none_for_a_lake_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not needed(tmp_path), "there is no lake yet"
    open_lake(no_session, FOLDER, tmp_path)
    assert not needed(tmp_path)
    assert needed(tmp_path, engine="spark")
    assert needed(tmp_path, CATALOG)
    assert needed(tmp_path, by_files=False), "the library may be asked for DataFrames"
    monkeypatch.setattr(internals, "native_problem", lambda: "it is switched off")
    assert needed(tmp_path), "Spark lands"


def test_a_table_with_deletion_vectors_needs_it(tmp_path: Path) -> None:
    open_lake(no_session, FOLDER, tmp_path)
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    log = tmp_path / "lake" / "records" / "_delta_log" / f"{1:020d}.json"
    log.write_text(json.dumps(protocol) + "\n")
    assert needed(tmp_path)


def test_a_lake_in_a_store_needs_none_and_is_not_asked(
    object_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads none of its tables: the JVM's start waits for none of them to be opened."""
    monkeypatch.setenv(KEY, SECRET)
    with link_to(object_store.address) as link:
        location = Location.model_validate(Store(link.address).lake("needs"))
        open_lake(no_session, location, tmp_path)
        before = len(link.requests)
        assert not needed(tmp_path, location)
        assert link.requests[before:] == []


def test_what_is_forgotten_by_sparks_words_is_looked_for_in_tables(tmp_path: Path) -> None:
    open_lake(no_session, FOLDER, tmp_path)
    lake = mirrorlake.open(write_file(tmp_path))
    lake.internals.in_a_command()
    assert not lake.internals._needs_delta()
    with pytest.raises(mirrorlake.InputError, match="the stage holds no topic orders"):
        lake.forget("orders", "get_json_object(CAST(value AS STRING), '$.a') = 'b'", dry_run=True)
    assert lake.internals._needs_delta()
