"""How many incidents are open is told without asking the lake, as of when that was asked last."""

from types import SimpleNamespace
from typing import Any

from mirrorlake.errors import TargetRefused
from mirrorlake.lake.incidents import IncidentKey, Incidents
from mirrorlake.lake.reader import QueryRows


class Table:
    """A lake whose open incidents are `rows`; what is written changes nothing of them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.asked = 0

    def ask_table(self, _name: str) -> QueryRows:
        self.asked += 1
        names = ("flow", "kind", "topic", "partition", "generation", "first_offset")
        return QueryRows(self.rows, names)

    @property
    def reader(self) -> "Table":
        """As it was asked last."""
        return self

    def query_rows(self, _name: str, **_more: object) -> list[dict[str, Any]]:
        return []

    def append(self, *_what: object) -> None:
        pass

    def change(self, *_what: object, **_more: object) -> None:
        pass


def test_counts_follow_what_this_process_does() -> None:
    lake = Table()
    place = {"topic": None, "partition": None, "generation": 0, "first_offset": None}
    lake.rows = [{"flow": "a->b", "kind": "flow_waits", **place}]
    incidents = Incidents(lake)  # type: ignore[arg-type]
    assert incidents.open_counts() == {}
    refused = TargetRefused("too large", topic="orders", partition=0)
    incidents.open("a->b", "target_refused", refused)
    incidents.open("a->b", "flow_waits", SimpleNamespace())  # type: ignore[arg-type]
    asked = lake.asked
    assert incidents.open_counts() == {"a->b": 1}, "as the lake said when it was asked last"
    assert incidents.open_kind_counts() == {("a->b", "flow_waits"): 1}
    incidents.settle_all([IncidentKey("a->b", "flow_waits")], "decided")
    assert incidents.open_counts() == {} and lake.asked == asked
    incidents.open("a->b", "target_refused", refused)
    assert incidents.open_counts() == {"a->b": 2}
