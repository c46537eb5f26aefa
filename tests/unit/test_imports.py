"""The direction of imports, for every package that there is, and what only one module may name.

`FLOORS` is the house from the ground up, as DESIGN.md tells it: a package imports from floors below
its own, and from no other package of its floor. So there is no cycle between packages.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.house import FLOORS, ROOT, SRC, package, room
from tests.support.syntax import syntax_of

MODULES = sorted(SRC.rglob("*.py"))
ROOMS = sorted({room(package(path)) for path in MODULES})
#: Modules that name one above them in a text, and why: Python starts it, or looks for it, as a
#: process of its own.
KNOWN = {
    (
        "spark.class_archive",
        "lake.warmup",
    ): "what a session mostly does takes a lake, and the archive is the session's",
    (
        "spark.class_archive",
        "devtools.local.warmup",
    ): "the same of brokers, which are made for development",
    (
        "spark.class_archive",
        "devtools.local.warmup_tables",
    ): "the same of a catalog, which takes a metastore of our own",
    ("devtools.demo.script", "cli.main"): "the demo runs and kills the command as people would",
    ("devtools.bench.contestants", "cli.main"): "the race is between commands",
    ("devtools.bench.measure", "cli.main"): "whose memory is told by the command line of a process",
}
#: What the command line and the notebooks may use: the library, what it raises, and how text is
#: shown.
FACE = {"library", "errors", "extras", "terminal", "durations"}
#: What of them reaches below the library, and why.
BELOW_THE_FACE = {
    (
        "cli.bench",
        "devtools.bench",
    ): "the race is for developers, and knows neither topology nor lake",
    ("cli.bench", "tracking"): "the race is recorded beside its results",
    ("cli.local", "devtools.demo"): "the demo is for a first look, and makes its own clusters",
    ("cli.logs", "config"): "what in a line may be a secret is said where settings are",
    (
        "cli.local",
        "spark",
    ): "it has the archive of Java's classes made behind itself, for the commands that come next",
    ("cli.local", "devtools.local"): "embedded clusters are for development",
    (
        "cli.importing",
        "mm2.importer",
    ): "a topology file is made, so there is none to open a lake by",
    (
        "cli.dashboard",
        "dashboard",
    ): "a server of pages, which reads the tables again and again by a reader of its own",
    ("cli.main", "heaps"): "the same of how often Python looks for garbage",
    (
        "cli.replicate",
        "heaps",
    ): "a process of its own may say how it keeps its memory; a library may not",
    (
        "cli.spark_queries",
        "failover",
    ): "the checkpoint of somebody's query is a file, and no part of a lake",
    ("cli.spark_queries", "spark"): "its answer has the form of an option of Spark's Kafka source",
    ("notebook.capacity", "config"): "where runs of MLflow are, the widgets say",
    ("notebook.capacity", "tracking"): "runs of MLflow are no tables of a lake",
    ("notebook.command", "cli"): "the page shows what the command line says, and does what it does",
    (
        "notebook.drill",
        "devtools.local",
    ): "a rehearsal starts the demo's own clusters, and stops them",
    ("notebook.drill", "kafka"): "a rehearsal on the demo's clusters makes a consumer group there",
    ("notebook.drill", "config"): "the topology says which clusters those are",
}
#: What is no part of the house: it stands on it, and the rest runs without it, and without its
#: libraries.
OUTBUILDINGS = {
    *("dashboard", "metrics", "migrate", "mm2.importer", "notebook", "tracking"),
    *("devtools", "devtools.bench", "devtools.demo", "devtools.local"),
}
#: Who leads into one besides the command line, within a function, and why. `library` is a face:
#: what is behind a door is loaded when somebody goes through it.
DOORS = {
    ("library.positions", "migrate"): "`OpenLake.migrate` is a call like the others",
    ("library.positions", "tracking"): "groups that are moved are a run of MLflow",
    ("library.replicating", "metrics"): "what Prometheus is served takes a library of its own",
    ("library.replicating", "tracking"): "so is a replicator, where MLflow is installed",
    ("notebook.capacity", "tracking"): "an outbuilding too: it compares the runs of MLflow",
    (
        "notebook.drill",
        "devtools.local",
    ): "an outbuilding too: it starts and stops clusters of the demo",
}
#: Packages of which all is pure. Elsewhere a module is pure that says so in the first paragraph of
#: its text.
PURE = ("config", "naming", "offsets", "mm2.importer")
PURE_REFUSES = (
    "pyspark",
    "delta",
    "deltalake",
    "confluent_kafka",
    "pyarrow",
    "pandas",
    "time",
    "os.environ",
    "os.getenv",
)
JVM_NAMES = {"sparkContext", "SparkContext", "_jvm", "_jdf", "_jsparkSession", "_sc", "rdd"}


def floor_of(folder: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if folder in floor)


def exists(name: str) -> bool:
    path = SRC.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


@cache
def tree_of(path: Path) -> ast.Module:
    return syntax_of(path.read_text(encoding="utf-8"))


@cache
def names_of(tree: ast.AST) -> frozenset[str]:
    """Everything that code imports, anywhere in it, and every `a.b.c` it reads."""
    return frozenset(_names_of(tree))


def _names_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def imported(tree: ast.AST) -> set[str]:
    """The modules of mirrorlake that code imports; `mirrorlake` itself is the library, except for
    its version number."""
    found = {
        name
        for name in names_of(tree)
        if name.startswith("mirrorlake.") and name != "mirrorlake.__version__"
    }
    return {name if exists(name) else name.rpartition(".")[0] for name in found}


def named_in_texts(tree: ast.AST) -> set[str]:
    """The modules of mirrorlake that texts of code name, in what is run; docstrings are for
    people."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    ]
    found = {name for text in texts for name in re.findall(r"\bmirrorlake(?:\.[a-z_0-9]+)+", text)}
    return {name for name in found if exists(name)}


def imported_at_once(tree: ast.Module) -> set[str]:
    """What of it is imported with the module, and not by a function of it, or for types alone."""
    waiting, at_once = list(tree.body), list[ast.stmt]()
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.Import | ast.ImportFrom):
            at_once.append(statement)
        elif isinstance(statement, ast.ClassDef | ast.With | ast.Try):
            waiting += statement.body
        elif isinstance(statement, ast.If) and ast.unparse(statement.test) != "TYPE_CHECKING":
            waiting += [*statement.body, *statement.orelse]
    return imported(ast.Module(at_once, []))


def wrong_ways(module: str, used: set[str]) -> list[str]:
    """What a module must not import: all of its own floor or above, except its own package."""
    here = room(module)
    return sorted(
        name for name in used if room(name) != here and floor_of(room(name)) >= floor_of(here)
    )


def says_pure(tree: ast.Module) -> bool:
    return bool(re.search(r"\bPure[.:]", (ast.get_docstring(tree) or "").split("\n\n")[0]))


def is_pure(name: str) -> bool:
    path = SRC.joinpath(*name.split(".")).with_suffix(".py")
    if room(name) in PURE or name == "mirrorlake.errors":
        return True
    return path.exists() and says_pure(tree_of(path))


def refused(tree: ast.AST, prefixes: tuple[str, ...]) -> list[str]:
    return [
        name
        for name in sorted(names_of(tree))
        if any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)
    ]


def jvm_names(tree: ast.AST) -> set[str]:
    """The names of Spark's JVM side that code reads as attributes, imports, or asks for by
    getattr."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name.rpartition(".")[2])
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr")
        ):
            found.update(str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))
    return found & JVM_NAMES


def test_each_package_has_its_floor() -> None:
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.rglob("__init__.py")
    } - {""}
    alone = {path.stem for path in ROOT.glob("*.py")} - {"__init__"}
    told = [folder for floor in FLOORS for folder in floor]
    assert sorted(told) == sorted(folders | alone)


def test_unit_tests_lie_as_the_code_does() -> None:
    """pytest tells files by their names alone, so these differ; what is about all of the code lies
    beside this file."""
    tests = Path(__file__).parent
    files = list(tests.parent.rglob("test_*.py"))
    folders = {path.parent.relative_to(tests) for path in files if path.is_relative_to(tests)}
    assert [folder for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []
    assert len({path.name for path in files}) == len(files)


def test_the_design_tells_of_each_package_from_the_ground_up() -> None:
    text = (SRC.parent / "DESIGN.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    lines = text.split("## The house")[1].split("```")[1].strip().splitlines()
    told = [
        re.split(r"(?<!,)\s", line, maxsplit=1)[0].replace("/", "").split(", ") for line in lines
    ]
    floors = [[floor_of(folder) for folder in folders] for folders in told]
    assert sorted(sum(told, [])) == sorted(
        {folder for floor in FLOORS for folder in floor} - {"__main__"}
    )
    assert floors == sorted(floors)


@pytest.mark.parametrize("folder", ROOMS)
def test_import_direction(folder: str) -> None:
    for path in MODULES:
        if room(package(path)) == folder:
            check_direction(package(path).removesuffix(".__init__"), tree_of(path))


def check_direction(name: str, tree: ast.Module) -> None:
    assert wrong_ways(name, imported(tree)) == []
    known = {f"mirrorlake.{above}" for module, above in KNOWN if f"mirrorlake.{module}" == name}
    assert set(wrong_ways(name, named_in_texts(tree))) == known
    if is_pure(name):
        assert refused(tree, PURE_REFUSES) == []
        assert [used for used in imported(tree) if not is_pure(used)] == []
        assert not [
            used
            for used in refused(tree, ("datetime",))
            if used.endswith((".now", ".utcnow", ".today"))
        ]
    if room(name) in ("cli", "notebook"):
        below = {room(used) for used in imported(tree)} - FACE - {room(name)}
        assert {
            folder for module, folder in BELOW_THE_FACE if f"mirrorlake.{module}" == name
        } == below
    if room(name) not in ("cli", "library", "tracking", "notebook"):
        assert refused(tree, ("mirrorlake.tracking", "mirrorlake.notebook", "mlflow")) == []
    if room(name) == "kafka":
        assert refused(tree, ("pyspark",)) == []
    if room(name) not in ("cli", "__main__"):
        assert (
            refused(
                tree,
                ("typer", *(() if name == "mirrorlake.notebook.command" else ("mirrorlake.cli",))),
            )
            == []
        )
    if name != "mirrorlake.spark.session":
        assert jvm_names(tree) == set()


def test_who_leads_into_an_outbuilding() -> None:
    """The command line may, and what is listed; nobody else, and nobody as soon as a module is
    imported."""
    found, at_once = set(), set()
    for path in MODULES:
        name, tree = package(path).removesuffix(".__init__"), tree_of(path)
        here = room(name)
        for used, into in ((imported(tree), found), (imported_at_once(tree), at_once)):
            rooms = {room(module) for module in used} & OUTBUILDINGS
            into |= {
                (name.removeprefix("mirrorlake."), other)
                for other in rooms
                if not akin(here, other)
            }
    assert {door for door in found if room(f"mirrorlake.{door[0]}") != "cli"} == set(DOORS)
    assert {door for door in at_once if room(f"mirrorlake.{door[0]}") not in OUTBUILDINGS} == set()


def akin(here: str, other: str) -> bool:
    """Whether two rooms are of one outbuilding: `devtools` has several."""
    return here == other or (here.startswith("devtools") and other.startswith("devtools"))


def test_who_goes_behind_the_face() -> None:
    """`OpenLake.internals` leads below the library too: projects that use it is listed, with what
    it is for."""
    using = {
        package(path).removeprefix("mirrorlake.")
        for path in MODULES
        if room(package(path)) in ("cli", "notebook")
        for name in names_of(tree_of(path))
        if name.endswith(".internals") and not name.startswith("mirrorlake.")
    }
    reasons = {module for module, _ in BELOW_THE_FACE}
    assert using == {"cli.context"} | (using & reasons), (
        "the command line says what making a session does"
    )
    assert using & reasons == {"cli.dashboard", "cli.spark_queries", "notebook.drill"}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("kafka.admin", "from mirrorlake.lake.lake import Lake"),
        ("kafka.admin", "from mirrorlake import lake"),
        ("kafka.admin", "def f():\n    from mirrorlake.control import topic_plan"),
        ("kafka.admin", "import mirrorlake.spark.session"),  # of its own floor
        (
            "mm2.importer.read",
            "from mirrorlake.mm2 import formats",
        ),  # a package of its own, within another
        ("errors", "from mirrorlake.naming.policy import DefaultPolicy"),
    ],
)
def test_the_check_sees_what_goes_up(module: str, text: str) -> None:
    assert wrong_ways(f"mirrorlake.{module}", imported(syntax_of(text)))


def test_the_check_sees_what_a_text_names() -> None:
    tree = syntax_of(
        '"""mirrorlake.cli.main is for people."""\nrun("-m", "mirrorlake.lake.warmup")'
    )
    assert wrong_ways("mirrorlake.spark.jars", named_in_texts(tree)) == ["mirrorlake.lake.warmup"]


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from time import sleep",
        "def f():\n    import pyspark.sql",
        "import os\nos.environ['X']",
        "from os import environ",
        "import os\nos.getenv('X')",
    ],
)
def test_the_check_sees_what_pure_code_must_not_do(text: str) -> None:
    assert refused(syntax_of(text), PURE_REFUSES)


@pytest.mark.parametrize(
    "text",
    [
        "spark.sparkContext",
        "x._jdf.y",
        "df.rdd.map(f)",
        "from pyspark import SparkContext",
        "getattr(s, '_jvm')",
    ],
)
def test_the_check_sees_the_jvm(text: str) -> None:
    assert jvm_names(syntax_of(text))


def test_the_check_lets_others_pass() -> None:
    text = "from datetime import timedelta\nimport timeit\nfrom mirrorlake.offsets import runs"
    assert refused(syntax_of(text), PURE_REFUSES) == []
    assert (
        wrong_ways("mirrorlake.lake.lake", {"mirrorlake.offsets.runs", "mirrorlake.lake.lease"})
        == []
    )
    assert jvm_names(syntax_of("spark.table('rdd')")) == set()
    assert not is_pure("mirrorlake.lake.lake") and is_pure("mirrorlake.lake.retention")


def test_what_is_planned_is_planned_purely() -> None:
    """A plan stands beside what carries it out, so it says itself that it is pure."""
    plans = [package(path) for path in MODULES if path.stem.endswith("_plan")]
    assert len(plans) > 3 and [name for name in plans if not is_pure(name)] == []


#: Calls of an AdminClient that a group's coordinator answers: librdkafka (2.16) may abort the
#: process in them.
DEADLY = {
    "alter_consumer_group_offsets",
    "delete_consumer_groups",
    "delete_consumer_group_offsets",
    "describe_consumer_groups",
    "list_consumer_group_offsets",
}


def test_what_may_abort_the_process_is_asked_in_a_process_of_its_own() -> None:
    asking = {
        path.name
        for path in MODULES
        for name in names_of(tree_of(path))
        if name.rpartition(".")[2] in DEADLY
    }
    assert asking == {"groups_worker.py"}
