"""Tables in an object store: what an append costs, and what becomes of it where a store misbehaves,
on a real server behind a link of ours."""

import threading
from collections.abc import Iterator
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from mirrorlake.errors import Fenced, LakeError
from mirrorlake.lake import path_tables, remote_place, store_place
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.delta_log import DeltaLog, files_of
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.place import Place, place_of
from mirrorlake.lake.store_place import StorePlace
from tests.support.object_store import Store
from tests.support.store_link import Fault, Request, StoreLink, link_to

#: Of the HTTP client, so that a test of silence is short.
IMPATIENT = {"timeout": "1s", "connect_timeout": "1s"}


@pytest.fixture
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


@pytest.fixture
def place(link: StoreLink, request: pytest.FixtureRequest) -> Place:
    """Where the lake of a test lies."""
    return Store(link.address).place(request.node.name)


@pytest.fixture
def tables(place: Place) -> PathTables:
    """With a table of one row."""
    tables = PathTables(place)
    tables.create("changes")
    tables.append("changes", row("first"), "a", 1)
    return tables


def row(kind: str) -> pa.Table:
    now = datetime.now(timezone.utc)
    place = {"flow": "a->b", "at": now, "resource": "topic", "outcome": "done"}
    return rows_of("changes", [{**place, "kind": kind}])


def kinds(place: Place) -> list[str]:
    """What the table holds, as delta-rs reads it."""
    table = (place / "changes").delta()
    return sorted(table.to_pyarrow_table(columns=["kind"])["kind"].to_pylist())


def commits(key: str, number: int | None = None) -> bool:
    name = key.rpartition("/")[2]
    return "_delta_log" in key and name.endswith(
        ".json" if number is None else f"{number:020d}.json"
    )


class Once:
    """A fault of the first put of a commit, and of no other request."""

    def __init__(self, fault: Fault) -> None:
        self._fault: Fault | None = fault

    def __call__(self, request: Request) -> Fault | None:
        if request.kind != "PUT" or not commits(request.key) or self._fault is None:
            return None
        fault, self._fault = self._fault, None
        return fault


def test_an_append_is_a_put_of_its_rows_and_one_of_its_commit(
    link: StoreLink, place: Place, tables: PathTables
) -> None:
    known = len(link.requests)
    tables.append("changes", row("second"), "a", 2)
    assert link.counted(known) == {"PUT": 2, "GET": 1}
    known = len(link.requests)
    tables.fence("changes", "a", 7)
    assert link.counted(known) == {"PUT": 1, "GET": 1}
    assert kinds(place) == ["first", "second"]
    statistics = (place / "changes").delta().get_add_actions(flatten=True)
    assert sum(pa.table(statistics)["num_records"].to_pylist()) == 2


def test_who_asks_again_lists_nothing(link: StoreLink, tables: PathTables) -> None:
    """A turn in which nothing happened."""
    assert tables.application_version("changes", "b") is None
    assert tables.opened("changes").version() == 1
    known = len(link.requests)
    for _ in range(5):
        assert tables.version("changes") == 1
        assert tables.application_version("changes", "a") == 1
        assert tables.opened("changes").version() == 1
    assert link.counted(known).keys() == {"GET"}
    tables.append("changes", row("first"), "a", 1)
    assert link.counted(known).keys() == {"GET"}, "it is there already"


def test_processes_append_beside_one_another(place: Place, tables: PathTables) -> None:
    """All rows come in once; who commits for an owner that was followed is told so."""
    others = [PathTables(place) for _ in range(3)]
    threads = [
        threading.Thread(
            target=lambda one=one, number=number: [
                one.append("changes", row(f"{number}-{at}"), f"p{number}", at) for at in range(6)
            ]
        )
        for number, one in enumerate(others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kinds(place) == sorted(["first", *(f"{n}-{at}" for n in range(3) for at in range(6))])
    assert tables.version("changes") == 19
    number = others[0].take_over("changes", "a", 5)
    assert number > 5 and tables.application_version("changes", "a") == number
    for stale in (tables, others[1]):
        with pytest.raises(Fenced):
            stale.append("changes", row("late"), "a", 2)
    others[2].append("changes", row("after"), "a", number + 1)
    assert kinds(place)[:2] == ["0-0", "0-1"] and "late" not in kinds(place)


class FirstOfEach:
    """A fault of the first put of each commit."""

    def __init__(self, fault: Fault) -> None:
        self._fault: Fault = fault
        self._met = set[str]()

    def __call__(self, request: Request) -> Fault | None:
        if request.kind != "PUT" or not commits(request.key) or request.key in self._met:
            return None
        self._met.add(request.key)
        return self._fault


@pytest.mark.parametrize("fault", ["torn", "503", "slow"])
@pytest.mark.parametrize("application", ["a", None])
def test_a_commit_that_fails_for_once_is_there_once(
    link: StoreLink, place: Place, tables: PathTables, fault: Fault, application: str | None
) -> None:
    """An answer that was lost is not taken for another process's commit."""
    link.fault = Once(fault)
    tables.append("changes", row("second"), application, 2)
    assert kinds(place) == ["first", "second"]
    assert tables.version("changes") == 2, "one commit"
    tables.append("changes", row("third"), application, 3)
    assert kinds(place) == ["first", "second", "third"]


def test_a_store_that_says_nothing_is_asked_again(
    link: StoreLink, place: Place, tables: PathTables
) -> None:
    impatient = PathTables(place_of(str(place), {**(place.options or {}), **IMPATIENT}))
    assert impatient.version("changes") == 1
    link.fault = Once("silent")
    impatient.append("changes", row("second"), "a", 2)
    assert kinds(place) == ["first", "second"] and tables.version("changes") == 2


def test_a_change_of_rows_whose_answer_was_lost_is_done_once(
    link: StoreLink, place: Place, tables: PathTables
) -> None:
    """Also one that would change them again each time; each commit is put twice here."""

    def longer(rows: pa.Table) -> pa.Table:
        names = pa.array([f"{kind}!" for kind in rows["kind"].to_pylist()])
        return rows.set_column(rows.schema.get_field_index("kind"), "kind", names)

    link.fault = FirstOfEach("torn")
    tables.rewrite("changes", longer)
    tables.append("changes", row("second"), "a", 2)
    tables.rewrite("changes", longer)
    assert kinds(place) == ["first!!", "second!"]
    assert tables.version("changes") == 4, "a commit each"


def test_what_comes_beside_a_change_of_rows_is_changed_too(
    place: Place, tables: PathTables
) -> None:
    other, seen = PathTables(place), list[list[str]]()

    def all_seen(rows: pa.Table) -> pa.Table:
        if not seen:
            other.append("changes", row("beside"), "b", 1)
        seen.append(sorted(rows["kind"].to_pylist()))
        names = pa.array(["seen"] * rows.num_rows)
        return rows.set_column(rows.schema.get_field_index("kind"), "kind", names)

    tables.rewrite("changes", all_seen)
    assert seen == [["first"], ["beside", "first"]] and kinds(place) == ["seen", "seen"]
    other.rewrite("changes", lambda rows: rows.slice(0, 0))
    assert kinds(place) == [] and tables.version("changes") == 4


def test_properties_are_given_once(object_store: Store, request: pytest.FixtureRequest) -> None:
    """An attempt whose answer was lost is made again."""
    tables = PathTables(object_store.place(request.node.name))
    tables.create("changes")
    for _ in range(2):
        tables.set_properties("changes", {"mirrorlake.test": "a"})
        assert tables.properties("changes")["mirrorlake.test"] == "a"
    assert tables.version("changes") == 1


def test_what_a_store_refuses_is_refused(link: StoreLink, place: Place, tables: PathTables) -> None:
    """As where credentials have expired; with others it goes on, and each row is there once."""
    link.fault = lambda request: "expired" if request.access_key else None
    with pytest.raises(OSError, match="ExpiredToken"):
        tables.append("changes", row("second"), "a", 2)
    link.fault = lambda _request: None
    tables.append("changes", row("second"), "a", 2)
    assert kinds(place) == ["first", "second"]


def test_a_commit_behind_a_log_that_was_cleaned_up_is_made_again(
    place: Place, tables: PathTables
) -> None:
    """By a process that was suspended for long: the number that it takes for the next one is free
    again, and a commit there is none of the table's."""
    other = PathTables(place)
    for number in range(2, 8):
        other.append("changes", row(str(number)), "b", number)
    other.opened("changes").create_checkpoint()
    log = DeltaLog(place / "changes")
    for version in range(6):
        log.file_of(version).delete()
    tables.append("changes", row("late"), "a", 2)
    assert kinds(place) == sorted(["first", "late", *map(str, range(2, 8))])
    assert tables.version("changes") == 8 == other.version("changes")
    with pytest.raises(Fenced):
        tables.append("changes", row("later"), "b", 6)


def test_a_log_gets_checkpoints(
    place: Place, tables: PathTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_tables, "_CHECKPOINT_EVERY", 3)
    for number in (2, 3, 4):
        tables.append("changes", row(str(number)), "a", number)
    assert DeltaLog(place / "changes").newest_checkpoint() == 3
    assert kinds(place) == ["2", "3", "4", "first"]


def test_a_log_that_others_keep_gets_its_checkpoints_from_them(
    link: StoreLink, place: Place, tables: PathTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who appends does not read the log for it; they do once, also where it was made compact."""
    monkeypatch.setattr(path_tables, "_CHECKPOINT_EVERY", 3)
    tables.kept_up, known = True, len(link.requests)
    for number in (2, 3, 4):
        tables.append("changes", row(str(number)), "a", number)
    assert link.counted(known) == {"PUT": 6, "GET": 3}
    assert tables.logs_due() == ["changes"]
    tables.compact("changes")
    tables.write_log_checkpoint("changes")
    assert tables.logs_due() == [] and DeltaLog(place / "changes").newest_checkpoint() == 5
    known = len(link.requests)
    tables.append("changes", row("5"), "b", 5)
    assert link.counted(known)["PUT"] == 2, "it goes on behind that commit"
    for number in (6, 7):
        assert tables.logs_due() == []
        tables.append("changes", row(str(number)), "b", number)
    assert tables.logs_due() == ["changes"]
    assert kinds(place) == ["2", "3", "4", "5", "6", "7", "first"]


def test_in_a_store_checkpoints_are_near_while_they_are_small(
    place: Place, tables: PathTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit behind one is a request of all who open the table; a checkpoint is written as a
    whole."""
    monkeypatch.setattr(path_tables, "_IN_STORE", 3)
    monkeypatch.setattr(path_tables, "_CHECKPOINT_EVERY", 6)
    log, checkpoints = DeltaLog(place / "changes"), []
    for number in range(2, 13):
        tables.append("changes", row(str(number)), "a", number)
        checkpoints.append(log.newest_checkpoint())
        if number == 6:  # one action for each that the newest checkpoint has, as of a large table
            monkeypatch.setattr(path_tables, "_ACTIONS_EACH", 1)
    assert sorted({*checkpoints}) == [-1, 3, 6, 12], "three behind three, then six"
    assert kinds(place) == sorted(["first", *map(str, range(2, 13))])


def test_a_damaged_hint_fails_no_commit(
    place: Place, tables: PathTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at behind the commit, for how large the checkpoint is."""

    def damaged(_log: Place) -> None:
        raise ValueError("it names no version")

    monkeypatch.setattr(path_tables, "_CHECKPOINT_EVERY", 2)
    monkeypatch.setattr(path_tables, "hinted", damaged)
    tables.append("changes", row("second"), "a", 2)
    assert kinds(place) == ["first", "second"]


class Held:
    """Holds back what is asked for commits, until it is let go."""

    def __init__(self) -> None:
        self.met, self.go_on = threading.Event(), threading.Event()

    def __call__(self, request: Request) -> Fault | None:
        if request.kind == "GET" and commits(request.key):
            self.met.set()
            self.go_on.wait(20)
        return None


@pytest.mark.parametrize("kept", ["compact", "write_log_checkpoint"])
def test_an_append_waits_for_nothing_that_keeps_its_table_small(
    link: StoreLink, place: Place, tables: PathTables, kept: str
) -> None:
    tables.append("changes", row("second"), "a", 2)
    link.fault = held = Held()
    keeping = threading.Thread(target=getattr(tables, kept), args=["changes"])
    keeping.start()
    assert held.met.wait(20)
    appending = threading.Thread(target=tables.append, args=["changes", row("third"), "a", 3])
    appending.start()
    appending.join(10)
    waited = appending.is_alive()
    held.go_on.set()
    for thread in (keeping, appending):
        thread.join(30)
    assert not waited and not keeping.is_alive()
    tables.append("changes", row("fourth"), "a", 4)
    assert kinds(place) == ["first", "fourth", "second", "third"]


@pytest.mark.parametrize("bound", [None, 10])
def test_a_file_is_opened_by_one_request(
    link: StoreLink, place: Place, bound: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that is larger than the bound parts are read."""
    if bound is not None:
        for module in (remote_place, store_place):
            monkeypatch.setattr(module, "IN_MEMORY", bound)
    file, content = place / "changes" / "file", bytes(range(100))
    file.write(content)
    known = len(link.requests)
    assert isinstance(file, StorePlace)
    opened = file.open()
    assert link.counted(known) == {"GET": 1}
    assert opened.read(7) == content[:7] and opened.read() == content[7:]
    assert link.counted(known) == {"GET": 1 if bound is None else 3}
    with pytest.raises(FileNotFoundError):
        (place / "nothing").open()  # type: ignore[attr-defined]


def test_to_a_table_with_constraints_nothing_is_written(place: Place, tables: PathTables) -> None:
    """Its rows would have to be checked first."""
    (place / "changes").delta().alter.add_constraint({"few": "kind <> 'none'"})
    for commit in (
        lambda: tables.append("changes", row("second"), "a", 2),
        lambda: tables.take_over("changes", "a", 7),
        lambda: tables.rewrite("changes", lambda rows: rows),
    ):
        with pytest.raises(LakeError, match="nothing is written to table .* it has constraints"):
            commit()
    assert kinds(place) == ["first"] and tables.application_version("changes", "a") == 1


def test_what_each_row_has_to_have(place: Place, tables: PathTables) -> None:
    with pytest.raises(LakeError, match="rows of table changes have no at"):
        tables.append("changes", row("second").drop_columns(["at"]), "a", 2)
    assert kinds(place) == ["first"]


def test_tables_are_made_compact(place: Place, tables: PathTables) -> None:
    for number in range(2, 6):
        tables.append("changes", row(str(number)), "a", number)
    replaced = tables.compact("changes")
    tables.write_log_checkpoint("changes")
    assert len(replaced) == 5 and len(files_of(tables.opened("changes"))) == 1
    tables.append("changes", row("6"), "a", 6)
    assert kinds(place) == ["2", "3", "4", "5", "6", "first"]
