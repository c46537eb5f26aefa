"""What the package brings alone, what its extras add, and what is said where a library is
missing."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from mirrorlake.extras import EXTRAS
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.path_tables import PathTables
from tests.support.house import ROOT, SRC, package, room
from tests.support.libraries import BASE, OF_A_TASK
from tests.support.syntax import syntax_of

PROJECT = (SRC.parent / "pyproject.toml").read_text(encoding="utf-8")
TASKS = (
    "mirrorlake.produce.task",
    "mirrorlake.produce.probe",
    "mirrorlake.verify.workers",
    "mirrorlake.landing.stream_source",
    "mirrorlake.landing.stage_file",
    "mirrorlake.landing.stage_rows",  # read and asked by the source, when it is used
    "mirrorlake.native.reader",
    "mirrorlake.kafka.admin",
    "mirrorlake.kafka.client_settings",  # what they are handed
)
#: pydantic's own half; and what a process may have without us, which is asked for and done without.
OF_OTHERS = {"pydantic_core", "IPython", "keyring"}
#: The rooms that import libraries of extras. Spark may be imported in any, where a session is
#: there.
ROOMS = {
    "altair": {"dashboard", "notebook"},
    "vl_convert": {"dashboard"},
    "mlflow": {"tracking"},
    "javaproperties": {"mm2.importer"},
    "prometheus_client": {"metrics"},
    "opentelemetry": {"metrics"},
    "obstore": {"lake"},
    "hdfs_native": {"lake"},
    "fsspec": {"lake"},
    "databricks": {"kafka", "lake"},
    "psutil": {"processes", "devtools.local"},
}
EVERYTHING = sorted({module for extra in EXTRAS.values() for module in extra.libraries})


def requirements(name: str) -> list[str]:
    """The distributions of a list of requirements in pyproject.toml, in lower case."""
    (found,) = re.findall(rf"^{re.escape(name)} = \[(.*?)\]$", PROJECT, re.MULTILINE | re.DOTALL)
    return [text.lower() for text in re.findall(r'^ *"([\w-]+)', found, re.MULTILINE)]


def imported(path: Path) -> set[str]:
    """The first names of everything that a module imports, in functions and by name too, but not
    for types alone."""
    tree = syntax_of(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called.endswith("import_module"):
                names |= {str(word.value) for word in node.args if isinstance(word, ast.Constant)}
    return {name.partition(".")[0] for name in names}


@cache
def libraries_by_module() -> Mapping[str, set[str]]:
    """What each module imports of others' libraries."""
    return {
        package(path): imported(path) - sys.stdlib_module_names - {"mirrorlake"}
        for path in ROOT.rglob("*.py")
    }


def test_the_extras_are_those_of_the_package() -> None:
    assert requirements("dependencies") == sorted(name.lower() for name in BASE.values())
    for name, extra in EXTRAS.items():
        named = {library.lower() for library in extra.libraries.values()}
        assert set(requirements(name)) == named, name
    (everything,) = re.findall(r'^all = \["mirrorlake\[(.*?)\]"\]$', PROJECT, re.MULTILINE)
    assert everything.split(",") == list(EXTRAS)
    page = (SRC.parent / "docs" / "library.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| `pip install 'mirrorlake\[(\w+)\]'`", page, re.MULTILINE)
    assert sorted(lines) == sorted([*EXTRAS, "all"])


def test_each_library_is_imported_where_it_belongs() -> None:
    libraries = libraries_by_module()
    used = set().union(*libraries.values())
    assert used - {*BASE, *EVERYTHING} == OF_OTHERS
    assert set(BASE) <= used, "no library is required that is not imported"
    for library, rooms in ROOMS.items():
        inside = {room(module) for module, names in libraries.items() if library in names}
        assert inside == rooms, library


OWN = {name: value for name, value in os.environ.items() if name != "MIRRORLAKE_TRACKING"}


def in_a_process(missing: Sequence[str], script: str) -> subprocess.CompletedProcess[str]:
    """What Python says of a script where libraries are not installed."""
    before = (
        "import sys; from tests.support.missing import Missing; sys.meta_path.insert(0, "
        f"Missing({list(missing)}))"
    )
    command = [sys.executable, "-c", f"{before}\n{script}"]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=SRC.parent, env=OWN, check=False
    )


def test_a_task_of_spark_needs_three_libraries() -> None:
    # Spark asks for psutil itself
    others = sorted({*BASE, *EVERYTHING} - OF_A_TASK - {"pyspark", "py4j", "psutil"})
    script = "\n".join(f"import {module}" for module in TASKS)
    # Arrow imports pandas where it is
    done = in_a_process([name for name in others if name != "pandas"], script)
    assert (done.returncode, done.stderr) == (0, "")


FILE = {
    "clusters": {alias: {"bootstrap_servers": "127.0.0.1:1"} for alias in ("east", "west")},
    "lake": {"path": "lake"},
    "flows": {"east->west": {"topics": ["orders"]}},
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a topology file and its lake, which knows one cluster."""
    place = tmp_path_factory.mktemp("alone")
    tables = PathTables(place / "lake")
    for name in ("records", "offset_map", "clusters"):
        tables.create(name)
    tables.append("clusters", rows_of("clusters", [{"alias": "east", "cluster_id": "E"}]))
    (place / "mirrorlake.yml").write_text(json.dumps(FILE), encoding="utf-8")
    (place / "tracked.yml").write_text(
        json.dumps({**FILE, "tracking": {"enabled": True}}), encoding="utf-8"
    )
    (place / "sent.yml").write_text(
        json.dumps({**FILE, "metrics": {"otlp": "http://127.0.0.1:4318"}}), encoding="utf-8"
    )
    (place / "mm2.properties").write_text("clusters = a, b\n", encoding="utf-8")
    warehouse = {"server_hostname": "h", "http_path": "p", "access_token": "t"}
    catalog = {
        "catalog": "main",
        "schema": "replication",
        "checkpoints": "c",
        "warehouse": warehouse,
    }
    (place / "warehouse.yml").write_text(json.dumps({**FILE, "lake": catalog}), encoding="utf-8")
    return place


def test_the_package_alone_answers(lake: Path) -> None:
    script = f"""if True:
        import mirrorlake, mirrorlake.testing
        lake = mirrorlake.open({str(lake / "mirrorlake.yml")!r})
        assert [row["alias"] for row in lake.rows("SELECT alias FROM clusters")] == ["east"]
        assert lake.arrow("SELECT max(landed_at) AS at FROM records").num_rows == 1
        from mirrorlake.cli.main import main
        main(["--help"])
    """
    done = in_a_process(EVERYTHING, script)
    assert (done.returncode, done.stderr) == (0, "")


SPARK = ["pyspark", "py4j", "pandas", "psutil"]


#: What is not installed, what a command is asked for then, and the extra and the library that it
#: names.
ASKED_FOR = (
    (["altair"], "dashboard --html page.html", "dashboard", "altair"),
    (["vl_convert"], "dashboard --html page.html", "dashboard", "vl-convert-python"),
    (["javaproperties"], "import mm2.properties", "import", "javaproperties"),
    (["mlflow"], "-c tracked.yml run", "tracking", "mlflow-skinny"),
    (["prometheus_client"], "run --metrics 127.0.0.1:0", "metrics", "prometheus-client"),
    (
        ["opentelemetry.exporter"],  # MLflow brings the rest of it
        "-c sent.yml run",
        "otlp",
        "opentelemetry-exporter-otlp-proto-http",
    ),
    (["databricks"], "-c warehouse.yml status", "databricks", "databricks-sql-connector"),
    (SPARK, "sql --engine spark 'SELECT 1'", "spark", "pyspark"),
    (SPARK, "local status", "spark", "psutil"),
    (SPARK, "demo", "spark", "psutil"),
    (SPARK, "bench", "spark", "psutil"),
    (["pyspark", "py4j"], "bench", "spark", "pyspark"),
)
#: Each is forked off one process that has read the command line, and none of these libraries.
FORKS = """if True:
    import json, os, sys
    from tests.support.missing import Missing
    from mirrorlake.cli.main import main
    for number, (missing, words) in enumerate(json.loads(sys.stdin.read())):
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(f"{number}.said", os.O_WRONLY | os.O_CREAT), 2)
            assert not {*missing} & sys.modules.keys()
            sys.meta_path.insert(0, Missing(missing))
            main(words)
            sys.exit()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def ends(lake: Path) -> list[tuple[int, str]]:
    """How each command of ASKED_FOR ends: its exit code, and what it says on stderr."""
    asked = json.dumps([(missing, shlex.split(words)) for missing, words, *_ in ASKED_FOR])
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        input=asked,
        capture_output=True,
        text=True,
        cwd=lake,
        env={**OWN, "PYTHONPATH": str(SRC.parent)},
        check=True,
    )
    said = [(lake / f"{number}.said").read_text("utf-8") for number in range(len(ASKED_FOR))]
    return [(int(code), text.strip()) for code, text in zip(done.stdout.split(), said, strict=True)]


@pytest.mark.parametrize("number", range(len(ASKED_FOR)), ids=lambda number: ASKED_FOR[number][1])
def test_a_command_names_what_to_install(ends: list[tuple[int, str]], number: int) -> None:
    (code, said), (_, _, extra, library) = ends[number], ASKED_FOR[number]
    assert code == 2, said
    line = f"needs {library}, which is not installed: pip install 'mirrorlake[{extra}]'"
    assert line in said.splitlines()[-1] and "Traceback" not in said


#: How the library is asked for what needs Spark, and what it needs no Spark for.
CALLS = {
    "lake.sql('SELECT 1')": True,
    "lake.table('records')": True,
    "lake.flows['east->west'].lag()": True,
    "lake.replay('orders', 'true', 'again')": True,
    "lake.replay_parked()": True,
    "lake.restore('east', 'west')": True,
    "lake.spark": True,
    "mirrorlake.open('mirrorlake.yml', engine='spark')": True,
    "mirrorlake.open(catalog='main', schema='replication').status()": True,
    "lake.incidents()": False,
}


def test_the_library_names_what_to_install(lake: Path) -> None:
    script = f"""if True:
        import os, mirrorlake
        os.chdir({str(lake)!r})
        lake = mirrorlake.open("mirrorlake.yml")
        for call in {list(CALLS)}:
            try:
                eval(call)
            except mirrorlake.MissingExtra as error:
                print(call, (error.extra, error.library, error.exit_code))
    """
    done = in_a_process(SPARK, script)
    missed = [
        f"{call} ('spark', 'pyspark', 2)" for call, needs_spark in CALLS.items() if needs_spark
    ]
    assert (done.returncode, done.stdout.splitlines()) == (0, missed), done.stderr


def test_a_run_is_recorded_where_mlflow_is_unless_the_file_asks_for_it(lake: Path) -> None:
    """Without it nothing is recorded, and no more than that; asked for, it is missed before
    anything begins."""
    script = f"""if True:
        from pathlib import Path
        from mirrorlake.config.topology import load_topology
        from mirrorlake.tracking.runs import check_wanted, versions
        from mirrorlake.errors import MissingExtra
        assert versions()["mirrorlake"]
        assert not check_wanted(load_topology(Path({str(lake / "mirrorlake.yml")!r})).tracking)
        try:
            check_wanted(load_topology(Path({str(lake / "tracked.yml")!r})).tracking)
        except MissingExtra as error:
            print(error.extra)
    """
    done = in_a_process(EVERYTHING, script)
    assert (done.returncode, done.stdout) == (0, "tracking\n"), done.stderr
