"""The local page's server: for this machine only; one reader at a time; and a page that loads
nothing."""

import http.client
import json
import re
import threading
from pathlib import Path

import pytest

from mirrorlake.dashboard.data import Snapshots, data_version, newest_of, to_json
from mirrorlake.dashboard.model import load_dashboard
from mirrorlake.dashboard.page import render
from mirrorlake.dashboard.server import DashboardServer
from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.place import place_of
from tests.support.dashboard_server import served


def refuse() -> bytes:
    raise LakeError("dataset ds_lag of the dashboard cannot be read: no such table")


def ask(
    server: DashboardServer, path: str, host: str | None = None, method: str = "GET"
) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{server.server_port}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, str(answer.headers["Content-Type"]), body


def test_it_answers_this_machine_and_nobody_else() -> None:
    with served(DashboardServer("<p>page</p>", lambda: b'{"at":1}', 0)) as server:
        assert server.server_address[0] == "127.0.0.1"
        assert ask(server, "/") == (200, "text/html; charset=utf-8", b"<p>page</p>")
        assert ask(server, "/data.json", f"localhost:{server.server_port}")[2] == b'{"at":1}'
        assert ask(server, "/", method="HEAD")[2] == b""
        assert ask(server, "/etc/passwd")[0] == 404
        assert ask(server, "/data.json", method="POST")[0] == 501
        for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1"):
            status, _, body = ask(server, "/data.json", host)
            assert (status, b"at" in body) == (403, False)


def test_a_lake_that_cannot_be_read_is_one_sentence() -> None:
    with served(DashboardServer("", refuse, 0)) as server:
        status, kind, body = ask(server, "/data.json")
        assert (status, kind) == (503, "application/json; charset=utf-8")
        assert (
            json.loads(body)["error"]
            == "dataset ds_lag of the dashboard cannot be read: no such table"
        )


def test_a_port_that_is_taken() -> None:
    with (
        served(DashboardServer("", lambda: b"", 0)) as server,
        pytest.raises(InputError, match=f"127.0.0.1:{server.server_port}.*choose another --port"),
    ):
        DashboardServer("", lambda: b"", server.server_port)


def test_many_lookers_share_one_read() -> None:
    reads = []
    inside, go_on = threading.Event(), threading.Event()

    def read() -> dict[str, object]:
        reads.append(1)
        inside.set()
        assert go_on.wait(30)
        return {"seconds": 0.1, "n": len(reads)}

    snapshots = Snapshots(read, seconds=3600)
    found: list[bytes] = []
    lookers = [threading.Thread(target=lambda: found.append(snapshots.newest())) for _ in range(5)]
    for looker in lookers:
        looker.start()
    assert inside.wait(30)
    go_on.set()
    for looker in lookers:
        looker.join()
    assert (len(reads), len(set(found))) == (1, 1)


def test_the_first_answer_is_read_before_a_browser_asks() -> None:
    """One that fails is read again for the browser, which is told why."""
    answers = iter([LakeError("the store is away"), {"n": 1}])
    began, read = threading.Event(), threading.Event()

    def first() -> dict[str, object]:
        began.set()
        answer = next(answers)
        if isinstance(answer, LakeError):
            read.set()
            raise answer
        return answer

    snapshots = Snapshots(first, 10)
    snapshots.begin()
    assert began.wait(30) and read.wait(30)
    assert json.loads(snapshots.newest()) == {"n": 1}


def test_an_old_answer_is_read_anew() -> None:
    answers = iter([{"n": 1}, {"n": 2}])
    now = [0.0]
    snapshots = Snapshots(lambda: next(answers), 10, lambda: now[0])
    seen = []
    for now[0] in (0, 9.9, 10, 19.9):
        seen.append(json.loads(snapshots.newest())["n"])
    assert seen == [1, 1, 2, 2]


def test_slow_reading_leaves_the_machine_to_others() -> None:
    now = [0.0]

    def read() -> dict[str, object]:
        now[0] += 5
        return {"until": now[0]}

    snapshots = Snapshots(read, 10, lambda: now[0])
    seen = set()
    while now[0] < 60:
        seen.add(json.loads(snapshots.newest())["until"])
        now[0] += 1
    assert sorted(seen) == [5, 25, 45], "a quarter of the time"


def test_a_mark_changes_with_the_tables_of_a_query(tmp_path: Path) -> None:
    for table in TABLES:
        (tmp_path / table / "_delta_log").mkdir(parents=True)
        (tmp_path / table / "_delta_log" / f"{0:020}.json").touch()

    def marks() -> dict[str, object]:
        newest = newest_of(place_of(tmp_path))
        return {
            dataset.name: data_version(newest, dataset.query)
            for dataset in load_dashboard().datasets
        }

    before = marks()
    assert marks() == before
    (tmp_path / "latency" / "_delta_log" / f"{1:020}.json").touch()
    changed = {name for name, mark in marks().items() if mark != before[name]}
    assert changed == {"ds_latency", "ds_throughput", "ds_heartbeats"}
    tells_the_time = {name for name, mark in before.items() if mark is None}
    # A lag grows while nobody reads; what is of a time to come ends to be by itself.
    lags = {"ds_lag", "ds_lag_history", "ds_groups", "ds_group_positions"}
    assert tells_the_time == {"ds_flows", "ds_open_incidents", "ds_incidents", *lags}
    assert data_version(newest_of(None), "SELECT 1 FROM changes") is None


def test_what_stands_in_a_script_cannot_end_it() -> None:
    text = to_json({"topic": "</script><script>alert(1)</script><!--", "line": "\u2028"}).decode()
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text)["topic"] == "</script><script>alert(1)</script><!--"


def test_the_page_allows_itself_nothing_from_elsewhere() -> None:
    page = render(load_dashboard(), {"at": 0, "seconds": 0, "datasets": {}}, None, "</script>lake")
    match = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert match is not None
    assert "default-src 'none'" in match[1] and "connect-src 'none'" in match[1]
    assert "unsafe-eval" not in match[1] and "script-src 'sha256-" in match[1]
    assert not re.findall(
        r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?!data:)", page.partition("<script>")[0]
    )
    assert page.count("</script>") == page.count("<script>") == 2
    live = render(load_dashboard(), None, 5, "lake")
    assert "connect-src 'self'" in live
