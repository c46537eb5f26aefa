"""Commands beside an object store that refuses: one sentence each, and exit code 2."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml

from tests.support.commands import forked
from tests.support.object_store import KEY, SECRET, Store
from tests.support.store_link import StoreLink, link_to
from tests.support.waiting import until

PLACE = ("--flow", "east->west", "--topic", "orders", "--partition", "0", "--offset", "3")


@pytest.fixture(scope="module")
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


def refused(link: StoreLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A topology file whose lake is behind the link."""
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    topology = tmp_path / "mirrorlake.yml"
    nowhere = {"bootstrap_servers": "127.0.0.1:1"}
    document = {"clusters": {"east": nowhere, "west": nowhere}, "flows": {"east->west": {}}}
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    Store(link.address).hold(topology, "refused")
    return topology


@pytest.mark.parametrize(
    "words",
    [
        ("sql", "SELECT count(*) FROM records"),
        ("status",),
        ("translate", *PLACE),
        ("trace", *PLACE),
        ("maintain", "--dry-run"),
    ],
    ids=lambda words: words[0],
)
def test_a_command_ends_with_a_sentence(
    link: StoreLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    topology = refused(link, tmp_path, monkeypatch)
    link.fault = lambda _request: "expired"
    done = forked(["-c", str(topology), *words], tmp_path)
    assert done.returncode == 2, done.stderr[-4_000:]
    assert "Traceback" not in done.stderr, done.stderr[-4_000:]
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("mirrorlake: the lake's store refused a request, or did not answer")
    assert "ExpiredToken" in sentence


def test_the_dashboards_page_shows_the_sentence(
    link: StoreLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = refused(link, tmp_path, monkeypatch)
    link.fault = lambda _request: None
    words = ["-m", "mirrorlake", "-c", str(topology), "dashboard", "--no-open", "--port", "0"]
    with (tmp_path / "said").open("wb") as said:
        shown = subprocess.Popen([sys.executable, *words], stdout=said, stderr=said)
    try:
        until(lambda: "dashboard at" in (tmp_path / "said").read_text(), "it listens")
        (url,) = re.findall(r"http://\S+", (tmp_path / "said").read_text())
        link.fault = lambda _request: "expired"
        with pytest.raises(HTTPError) as answer:
            urlopen(f"{url.rstrip('/')}/data.json", timeout=60)
    finally:
        shown.terminate()
        shown.wait(30)
    assert answer.value.code == 503
    sentence = json.loads(answer.value.read())["error"]
    assert sentence.startswith("the lake's store refused a request, or did not answer")
    assert "Traceback" not in (tmp_path / "said").read_text()
