"""An answer of a store that breaks off in the middle is asked for again: the libraries beneath do
that for none that has begun."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirrorlake.lake.place import Place
from tests.support.object_store import Store
from tests.support.store_link import Fault, Request, StoreLink, link_to

TIMES = 3


class Broken:
    """The first answers to each question break off."""

    def __init__(self, times: int) -> None:
        self.times, self.asked = times, Counter[tuple[str, str]]()

    def __call__(self, request: Request) -> Fault | None:
        if request.kind not in ("GET", "LIST"):
            return None
        self.asked[request[:2]] += 1
        return "half" if self.asked[request[:2]] <= self.times else None


@pytest.fixture(scope="module")
def link(object_store: Store) -> Iterator[StoreLink]:
    with link_to(object_store.address) as link:
        yield link


@pytest.fixture
def place(link: StoreLink) -> Iterator[Place]:
    """A folder with a file and a table of one row."""
    place = Store(link.address).place(f"broken-{uuid.uuid4().hex}")
    (place / "file").write(b"what it holds")
    table = str(place / "table")
    write_deltalake(table, pa.table({"a": [1]}), storage_options=dict(place.options or {}))
    yield place
    link.fault = lambda _request: None


QUESTIONS: dict[str, tuple[Callable[[Place], object], object]] = {
    "a file": (lambda place: (place / "file").read(), b"what it holds"),
    "names": (lambda place: place.names(), ["file", "table"]),
    "names behind": (lambda place: place.names("a"), ["file"]),
    "a table": (lambda place: (place / "table").delta().version(), 0),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_is_asked_again(link: StoreLink, place: Place, question: str) -> None:
    ask, answer = QUESTIONS[question]
    link.fault, met = Broken(1 if question == "a table" else TIMES), link.met
    assert ask(place) == answer
    assert link.met > met


@pytest.mark.parametrize(
    "question",
    [
        # whose client goes on for ten seconds
        pytest.param("a file", marks=pytest.mark.wide("test_what_goes_on_breaking_off_is_raised")),
        *(question for question in QUESTIONS if question != "a file"),
    ],
)
def test_what_goes_on_breaking_off_is_raised(link: StoreLink, place: Place, question: str) -> None:
    ask, _ = QUESTIONS[question]
    link.fault = Broken(1_000)
    with pytest.raises(OSError, match="body"):
        ask(place)
