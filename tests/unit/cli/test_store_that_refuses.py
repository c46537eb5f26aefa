"""Commands beside an object store that refuses: one sentence each, and exit code 2."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.commands import forked
from tests.support.object_store import KEY, SECRET, Store
from tests.support.store_link import StoreLink, link_to

PLACE = ("--flow", "east->west", "--topic", "orders", "--partition", "0", "--offset", "3")


@pytest.fixture(scope="module")
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


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
    link: StoreLink,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    topology = tmp_path / "mirrorlake.yml"
    nowhere = {"bootstrap_servers": "127.0.0.1:1"}
    document = {"clusters": {"east": nowhere, "west": nowhere}, "flows": {"east->west": {}}}
    topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    Store(link.address).hold(topology, "refused")
    link.fault = lambda _request: "expired"
    done = forked(["-c", str(topology), *words], tmp_path)
    assert done.returncode == 2, done.stderr[-4_000:]
    assert "Traceback" not in done.stderr, done.stderr[-4_000:]
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("mirrorlake: the lake's store refused a request, or did not answer")
    assert "ExpiredToken" in sentence
