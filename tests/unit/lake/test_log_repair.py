"""What Delta's protocol calls optional may be damaged or gone: the table opens, and it is written
again."""

import uuid
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError, TableNotFoundError

from mirrorlake.lake.delta_log import DeltaLog, files_of
from mirrorlake.lake.log_copy import LogCopy
from mirrorlake.lake.log_repair import HINT, mended
from mirrorlake.lake.place import Place, place_of
from tests.support.object_store import Store

ROWS = pa.table({"x": [1, 2]})
CHECKPOINT = "{:020d}.checkpoint.parquet"
Damage = Callable[[Path], object]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions 0 to 3, checkpoints of 1 and 3."""
    for version in range(4):
        deltalake.write_deltalake(str(tmp_path), ROWS, mode="append")
        if version % 2:
            deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    return tmp_path


def log_of(table: Path) -> Path:
    return table / "_delta_log"


def torn(name: str, size: int) -> Damage:
    return lambda log: (log / name).write_bytes((log / name).read_bytes()[:size])


def flipped(name: str) -> Damage:
    """Damaged in the middle: its footer reads as ever."""

    def damage(log: Path) -> None:
        content = bytearray((log / name).read_bytes())
        content[20 : len(content) // 2] = bytes(len(content) // 2 - 20)
        (log / name).write_bytes(bytes(content))

    return damage


DAMAGES: dict[str, Damage] = {
    "no hint": lambda log: (log / HINT).unlink(),
    "an empty hint": torn(HINT, 0),
    "a torn hint": torn(HINT, 12),
    "a hint of another kind": lambda log: (log / HINT).write_text("[]"),
    "no checkpoint": lambda log: (log / CHECKPOINT.format(3)).unlink(),
    "an empty checkpoint": torn(CHECKPOINT.format(3), 0),
    "a torn checkpoint": torn(CHECKPOINT.format(3), 300),
    "a checkpoint damaged in the middle": flipped(CHECKPOINT.format(3)),
    "an empty checksum": lambda log: (log / f"{3:020d}.crc").write_bytes(b""),
    "a torn checksum": lambda log: (log / f"{3:020d}.crc").write_bytes(b'{"tableSizeBytes"'),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_table_opens_and_goes_on(table: Path, damage: Damage) -> None:
    damage(log_of(table))
    delta = place_of(table).delta()
    assert (delta.version(), delta.to_pyarrow_table().num_rows) == (3, 8)
    assert DeltaLog(place_of(table)).newest_checkpoint() == 3
    deltalake.write_deltalake(delta, ROWS, mode="append")
    again = place_of(table).delta()
    again.create_checkpoint()
    assert DeltaLog(place_of(table)).newest_checkpoint() == 4
    assert place_of(table).delta().to_pyarrow_table().num_rows == 10


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize(
    "opened",
    [
        Place.delta,
        pytest.param(
            lambda place: LogCopy(place).opened(),
            marks=pytest.mark.wide("test_in_an_object_store_it_does_too"),
        ),
    ],
)
def test_in_an_object_store_it_does_too(
    table: Path,
    damage: Damage,
    opened: Callable[[Place], deltalake.DeltaTable],
    object_store: Store,
) -> None:
    """What Arrow says of damage there looks as what a store says that is away."""
    damage(log_of(table))
    place = object_store.place(f"repair-{uuid.uuid4().hex}")
    for path in table.rglob("*"):
        if path.is_file():
            (place / str(path.relative_to(table))).write(path.read_bytes())
    delta = opened(place)
    assert (delta.version(), len(files_of(delta))) == (3, 4)


@pytest.mark.parametrize("hint", ["", "[]", "{}", '{"version": null}', '{"version": "x"}'])
def test_the_newest_checkpoint_is_known_without_its_hint(table: Path, hint: str) -> None:
    (log_of(table) / HINT).write_text(hint)
    assert DeltaLog(place_of(table)).newest_checkpoint() == 3
    (log_of(table) / HINT).unlink()
    assert DeltaLog(place_of(table)).newest_checkpoint() == 3


def test_a_checksum_of_what_was_damaged_goes_with_it(table: Path) -> None:
    """Hadoop's, of a checkpoint that Spark wrote to a disk: it would refuse the new one."""
    checksum = log_of(table) / f".{CHECKPOINT.format(3)}.crc"
    checksum.write_bytes(b"crc of another file")
    other = log_of(table) / f".{CHECKPOINT.format(1)}.crc"
    other.write_bytes(b"crc of a good one")
    torn(CHECKPOINT.format(3), 300)(log_of(table))
    assert mended(place_of(table))
    assert not checksum.exists() and other.exists()


def test_the_commits_behind_an_older_checkpoint_are_enough(table: Path) -> None:
    for version in (0, 1):
        (log_of(table) / f"{version:020d}.json").unlink()
    torn(CHECKPOINT.format(3), 300)(log_of(table))
    assert place_of(table).delta().to_pyarrow_table().num_rows == 8
    for version in (2, 3):  # what cleaning up behind a checkpoint leaves
        (log_of(table) / f"{version:020d}.json").unlink()
    assert place_of(table).delta().to_pyarrow_table().num_rows == 8


@pytest.mark.parametrize("gone", [[0], [2], [3], [2, 3]])
def test_nothing_is_made_up_that_commits_do_not_say(table: Path, gone: list[int]) -> None:
    for version in gone:
        (log_of(table) / f"{version:020d}.json").unlink()
    for version in (1, 3):
        torn(CHECKPOINT.format(version), 300)(log_of(table))
    before = sorted(path.name for path in log_of(table).iterdir())
    assert not mended(place_of(table))
    with pytest.raises(DeltaError):
        place_of(table).delta()
    assert sorted(path.name for path in log_of(table).iterdir()) == before


def test_a_hint_of_a_version_that_is_not_there_is_left(table: Path) -> None:
    (log_of(table) / HINT).write_text('{"version": 9, "size": 1}')
    assert not mended(place_of(table)) and (log_of(table) / HINT).exists()


def test_a_log_in_order_is_left_alone(table: Path) -> None:
    before = sorted(path.name for path in log_of(table).iterdir())
    assert not mended(place_of(table))
    assert sorted(path.name for path in log_of(table).iterdir()) == before


def test_a_commit_that_is_gone_is_not_taken_for_one_that_is_still_to_come(table: Path) -> None:
    """Also where the newest checkpoint is of that very version: who waited for it would follow the
    table no more, without a word."""
    log = DeltaLog(place_of(table))
    assert log.commit(4) is None
    assert log.commit(3) is not None
    for version in (2, 3):
        log.file_of(version).delete()
        with pytest.raises(FileNotFoundError, match=f"commit {version} of .* is gone"):
            log.commit(version)
    assert log.commit(4) is None
    assert log.snapshot()[0] == 3, "the snapshot says"


def test_a_folder_without_a_table_says_so(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        place_of(tmp_path).delta()


def test_a_checkpoint_that_cannot_be_looked_at_now_is_not_damaged(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(table)
    read = type(place).read

    def refused(self: Place) -> bytes:
        if self.name.endswith(".parquet"):
            raise PermissionError(13, "Permission denied")
        return read(self)

    monkeypatch.setattr(type(place), "read", refused)
    assert not mended(place) and (log_of(table) / CHECKPOINT.format(3)).exists()
