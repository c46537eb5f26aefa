"""What `import mirrorlake` gives: its names, their signatures, and that it costs nothing to
import."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mirrorlake
from mirrorlake import errors
from mirrorlake.library import (
    answers,
    flows,
    group_answers,
    lake,
    lake_answers,
    resent,
    tracing,
    verify_answer,
)
from mirrorlake.library.flows import Flows, UnknownFlow
from tests.support.syntax import syntax_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
HOMES = (answers, group_answers, lake_answers, verify_answer, flows, lake, resent, tracing)
LAKE = {
    "translate": (
        "(flow: str, topic: str, partition: int, offset: int, *, reverse: bool = False) -> Position"
    ),
    "translate_all": "(flow: str, positions: Iterable[tuple[str, int, int]], *, reverse: bool = "
    "False)"
    " -> dict[tuple[str, int, int], Position]",
    "status": "() -> Status",
    "doctor": "() -> Rows",
    "groups": "(flow: str, groups: Sequence[str] | None = None) -> Groups",
    "table": "(name: str) -> 'DataFrame'",
    "sql": "(query: str, /, **parameters: object) -> 'DataFrame'",
    "rows": "(query: str, /, *, limit: int | None = None, **parameters: object) -> Rows",
    "arrow": "(query: str, /, **parameters: object) -> 'Table'",
    "plan": "(flows: Sequence[str] | None = None) -> Plan",
    "run": "(flows: Sequence[str] | None = None, *, once: bool = False,"
    " report: Callable[[Produced], None] | None = None, stop: Event | None = None, reader: str = "
    "'auto', register: bool = False, metrics: str | None = None, standby: bool = False) -> Rows",
    "register": "() -> Registered",
    "incidents": "(flow: str | None = None, topic: str | None = None, partition: int | None = None,"
    " kind: str | None = None, *, target_topic: str | None = None) -> Rows",
    "resolve": "(choice: str, flow: str | None = None, topic: str | None = None, partition: int | "
    "None = None,"
    " kind: str | None = None, *, target_topic: str | None = None) -> Resolved",
    "failover": "(flow: str, groups: Sequence[str] | None = None, *, dry_run: bool = False, force: "
    "bool = False,"
    " drain: bool = True) -> Moves",
    "failback": "(flow: str, groups: Sequence[str] | None = None, *, dry_run: bool = False, force: "
    "bool = False,"
    " drain: bool = True) -> Moves",
    "verify": "(flows: Sequence[str] | None = None, topics: Sequence[str] = (), *,"
    " since: datetime.datetime | None = None, offsets: tuple[int, int] | None = None, sample: "
    "float | None = None, again: bool = False, watch: bool = False, max_mb_per_s: float | None = "
    "None, report: Callable[[Verified], None] | None = None, stop: Event | None = None) -> "
    "Verified",
    "migrate": "(flow: str, topics: str, groups: str = '.*', *, copies: str = '{source}.{topic}',"
    " rollback: bool = False, dry_run: bool = False, inexact: bool = False) -> Migrated",
    "replay": "(topic: str, where: str, to: str, *, source: str | None = None, cluster: str | None "
    "= None,"
    " max_records: int | None = None, rate: int | None = None, into_mirror: bool = False, "
    "start_over: bool = False, private: bool = False, dry_run: bool = False, report: "
    "Callable[[int], None] | None = None, answered: Callable[[Resent], None] | None = None, stop: "
    "Event | None = None) -> Resent",
    "replay_parked": "(flow: str | None = None, topic: str | None = None, *, rate: int | None = "
    "None,"
    " start_over: bool = False, dry_run: bool = False, report: Callable[[int], None] | None = None,"
    " stop: Event | None = None) -> Resent",
    "restore": "(source: str, target: str, topics: Sequence[str] = (), *,"
    " as_of: datetime.datetime | None = None, below: Mapping[tuple[str, int], int] | None = None, "
    "extras: Collection[str] = (), rename: str = 'identity', compacted: bool = False, start_over: "
    "bool = False, dry_run: bool = False, report: Callable[[int], None] | None = None, answered: "
    "Callable[[Resent], None] | None = None, stop: Event | None = None) -> Resent",
    "forget": "(topic: str | Iterable[str], where: str, *, source: str | None = None, dry_run: "
    "bool = False)"
    " -> Forgotten",
    "maintain": "(*, retention_days: int | None = None, vacuum_hours: int | None = None, dry_run: "
    "bool = False)"
    " -> Upkeep",
}
FLOW = {
    **dict.fromkeys(("lag", "latency", "staged_only", "never_staged"), "() -> 'DataFrame'"),
    "divergence": "() -> Divergence",
    "trace": "(topic: str, partition: int | None = None, offset: int | None = None, *, key: str | "
    "None = None,"
    " since: 'datetime | None' = None, reverse: bool = False) -> 'Trace'",
}
OPEN = (
    "(topology: str | PathLike[str] | None = None, *, catalog: str | None = None, schema: str | "
    "None = None, path: str | PathLike[str] | None = None, read_only: bool = False, spark: "
    "'SparkSession | None' = None, engine: str | None = None) -> OpenLake"
)


def signature(what: object) -> str:
    """Without `self`, and without the modules of types."""
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", str(inspect.signature(what)))  # type: ignore[arg-type]
    return text.replace("(self, ", "(").replace("(self)", "()")


def methods(kind: type) -> dict[str, str]:
    found = {
        name: item for base in reversed(kind.__mro__[:-1]) for name, item in vars(base).items()
    }
    return {
        name: signature(item)
        for name, item in found.items()
        if name[0] != "_" and inspect.isfunction(item)
    }


def named_in_signatures() -> set[str]:
    """The classes of the library that its functions take and give, by what their signatures say."""
    texts = [
        signature(mirrorlake.open),
        *methods(mirrorlake.OpenLake).values(),
        *methods(mirrorlake.OpenFlow).values(),
    ]
    words = {word for text in texts for word in re.findall(r"\b[A-Z]\w+", text)}
    found = {
        name
        for module in HOMES
        for name, item in vars(module).items()
        if inspect.isclass(item) and item.__module__ == module.__name__
    }
    return words & found


def imported_for_type_checkers() -> set[str]:
    """What the source of the package imports, for those that read it: type checkers and editors."""
    tree = syntax_of(inspect.getsource(mirrorlake))
    names = [
        (node.module, name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    ]
    return {name for module, name in names if str(module).startswith("mirrorlake.")}


def test_the_names() -> None:
    raised = {
        name
        for name, item in vars(errors).items()
        if inspect.isclass(item) and issubclass(item, Exception)
    }
    public = {"open", "OpenFlow", *named_in_signatures(), *raised}
    assert set(mirrorlake.__all__) == {"__version__", *public}
    assert imported_for_type_checkers() == public
    assert mirrorlake.__all__ == sorted(mirrorlake.__all__)
    assert all(getattr(mirrorlake, name) is not None for name in mirrorlake.__all__)
    assert set(mirrorlake.__all__) <= set(dir(mirrorlake))
    with pytest.raises(AttributeError, match="no attribute 'opn'"):
        mirrorlake.opn  # noqa: B018


def test_the_signatures() -> None:
    assert signature(mirrorlake.open) == OPEN
    assert methods(mirrorlake.OpenLake) == LAKE
    assert methods(mirrorlake.OpenFlow) == FLOW


def test_all_of_it_is_documented() -> None:
    for kind in (mirrorlake.OpenLake, mirrorlake.OpenFlow):
        for name in methods(kind):
            assert inspect.getdoc(getattr(kind, name)), name
            assert f"`{'lake' if kind is mirrorlake.OpenLake else 'flow'}.{name}(" in PAGE, name
    assert all(f"`{name}`" in PAGE for name in named_in_signatures() - {"OpenLake"})


@pytest.mark.parametrize(
    "statement", ["import mirrorlake", "from mirrorlake import InputError", "dir(mirrorlake)"]
)
def test_importing_it_imports_nothing_heavy(statement: str) -> None:
    heavy = {"pyspark", "pandas", "confluent_kafka", "pyarrow", "pydantic"}
    script = (
        f"import sys, mirrorlake; {statement}; sys.exit(' '.join({heavy} & set(sys.modules)) "
        "or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_answers_alone_need_no_spark() -> None:
    script = (
        "import sys; from mirrorlake import Position, Rows, Status; sys.exit('pyspark' in "
        "sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_types_are_shipped() -> None:
    assert (ROOT / "src" / "mirrorlake" / "py.typed").exists()


def topology(directory: Path) -> Path:
    file = directory / "mirrorlake.yml"
    file.write_text(
        "clusters: {east: {bootstrap_servers: 'x:1'}, west: {bootstrap_servers: 'y:1'}}\nlake: "
        "{path: ./lake}\nflows: {east->west: {topics: [orders]}, west->east: {enabled: false}}\n",
        encoding="utf-8",
    )
    return file


def test_opening_starts_nothing(tmp_path: Path) -> None:
    lake = mirrorlake.open(topology(tmp_path))
    assert list(lake.flows) == ["east->west", "west->east"] and isinstance(lake.flows, Flows)
    assert [flow.enabled for flow in lake.flows.values()] == [True, False]
    assert (lake.flows["east->west"].source, lake.flows["east->west"].target) == ("east", "west")
    assert (
        repr(lake) == f"OpenLake('{tmp_path / 'mirrorlake.yml'}')"
        and "east-&gt;west" in lake.flows._repr_html_()
    )
    assert not (tmp_path / "lake").exists()


def test_an_unknown_flow_is_wrong_input_and_a_missing_key(tmp_path: Path) -> None:
    lake = mirrorlake.open(topology(tmp_path))
    for ask in (
        lambda: lake.flows["east->wets"],
        lambda: lake.translate("east->wets", "orders", 0, 1),
        lambda: lake.groups("east->wets"),
        lambda: lake.failover("east->wets", dry_run=True),
    ):
        with pytest.raises(
            mirrorlake.TopologyError, match="^there is no flow east->wets; did you mean east->west"
        ) as it:
            ask()
        assert (
            isinstance(it.value, KeyError)
            and it.value.exit_code == 2
            and isinstance(it.value, UnknownFlow)
        )
    assert "east->wets" not in lake.flows and lake.flows.get("east->wets") is None


def test_wrong_input(tmp_path: Path) -> None:
    for given in (
        {},
        {"catalog": "main"},
        {"path": ".", "catalog": "main", "schema": "s"},
        {"topology": "x", "path": "."},
    ):
        with pytest.raises(mirrorlake.InputError, match="open a lake by one of"):
            mirrorlake.open(**given)  # type: ignore[arg-type]
    with pytest.raises(mirrorlake.TopologyError, match="none.yml"):
        mirrorlake.open(tmp_path / "none.yml")
    with pytest.raises(mirrorlake.InputError, match="count from 0"):
        mirrorlake.open(topology(tmp_path)).translate("east->west", "orders", 0, -1)


def test_a_lake_by_its_place_has_no_clusters(tmp_path: Path) -> None:
    lake = mirrorlake.open(path=tmp_path)
    assert repr(lake) == f"OpenLake('{tmp_path}')"
    assert (
        repr(mirrorlake.open(catalog="main", schema="replication"))
        == "OpenLake('main.replication')"
    )
    for ask in (lake.plan, lambda: lake.run(once=True), lake.maintain):
        with pytest.raises(mirrorlake.InputError, match="only the topology file says"):
            ask()
