"""The direction of imports, and what only one module may name (DESIGN section 7)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
MODULES = sorted(SRC.rglob("*.py"))
CORE_REFUSES = (
    "pyspark", "delta", "confluent_kafka", "pyarrow", "pandas", "time", "os.environ", "os.getenv",
    "mirrorlake.cli", "mirrorlake.devtools",
)  # fmt: skip
PURE = {
    "mirrorlake.checks.laws",
    "mirrorlake.checks.problem",
    "mirrorlake.checks.route_rules",
    "mirrorlake.checks.routes",
    "mirrorlake.checks.rules",
    "mirrorlake.config.client_settings",
    "mirrorlake.config.fields",
    "mirrorlake.config.flow",
    "mirrorlake.config.flow_reasons",
    "mirrorlake.config.maintenance",
    "mirrorlake.config.objectives",
    "mirrorlake.config.redaction",
    "mirrorlake.config.references",
    "mirrorlake.config.security",
    "mirrorlake.config.topology",
    "mirrorlake.config.topology_file",
    "mirrorlake.config.tracking",
    "mirrorlake.control.acl_plan",
    "mirrorlake.control.config_plan",
    "mirrorlake.control.target_survey",
    "mirrorlake.control.topic_plan",
    "mirrorlake.groups.checkpoint_plan",
    "mirrorlake.groups.moves",
    "mirrorlake.groups.sync_plan",
    "mirrorlake.lake.changes",
    "mirrorlake.lake.retention",
    "mirrorlake.lake.topic_states",
    "mirrorlake.landing.refusals",
    "mirrorlake.landing.rewind",
    "mirrorlake.landing.survey",
    "mirrorlake.mm2.formats",
    "mirrorlake.mm2.importer.client_keys",
    "mirrorlake.mm2.importer.connect",
    "mirrorlake.mm2.importer.dedicated",
    "mirrorlake.mm2.importer.document",
    "mirrorlake.mm2.importer.draft",
    "mirrorlake.mm2.importer.entries",
    "mirrorlake.mm2.importer.flow_keys",
    "mirrorlake.mm2.importer.jaas",
    "mirrorlake.mm2.importer.mirrormaker1",
    "mirrorlake.mm2.importer.read",
    "mirrorlake.mm2.importer.report",
    "mirrorlake.mm2.importer.secrets",
    "mirrorlake.mm2.importer.security",
    "mirrorlake.mm2.importer.sides",
    "mirrorlake.mm2.importer.tls",
    "mirrorlake.mm2.importer.verdict",
    "mirrorlake.mm2.topics",
    "mirrorlake.naming.custom_policy",
    "mirrorlake.naming.policy",
    "mirrorlake.naming.selection",
    "mirrorlake.notebook.cores",
    "mirrorlake.offsets.lag",
    "mirrorlake.offsets.progress",
    "mirrorlake.offsets.runs",
    "mirrorlake.offsets.stage_index",
    "mirrorlake.produce.batch",
    "mirrorlake.produce.holes",
    "mirrorlake.produce.pace",
    "mirrorlake.run.presence",
    "mirrorlake.spark.query_files",
}
JVM_NAMES = {"sparkContext", "SparkContext", "_jvm", "_jdf", "_jsparkSession", "_sc", "rdd"}


def package(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts)


def names_of(tree: ast.AST) -> Iterator[str]:
    """Everything that code imports, anywhere in it, and every `a.b.c` it reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def refused(text: str, prefixes: tuple[str, ...]) -> list[str]:
    found = sorted(set(names_of(ast.parse(text))))
    return [name for name in found if any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)]


def jvm_names(text: str) -> set[str]:
    """The names of Spark's JVM side that code reads as attributes, imports, or asks for by getattr."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name.rpartition(".")[2])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            found.update(str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))
    return found & JVM_NAMES


def test_there_is_something_to_check() -> None:
    assert {"mirrorlake.config.topology", "mirrorlake.kafka.config"} <= {package(path) for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=package)
def test_import_direction(path: Path) -> None:
    text, name = path.read_text(encoding="utf-8"), package(path)
    if name in PURE:
        assert refused(text, CORE_REFUSES) == []
        assert not [used for used in refused(text, ("datetime",)) if used.endswith((".now", ".utcnow", ".today"))]
    if not name.startswith(("mirrorlake.cli.", "mirrorlake.tracking", "mirrorlake.notebook")):
        assert refused(text, ("mirrorlake.tracking", "mirrorlake.notebook", "mlflow")) == []
    if name.startswith("mirrorlake.kafka."):
        assert refused(text, ("mirrorlake.lake", "mirrorlake.cli", "pyspark")) == []
    if not name.startswith(("mirrorlake.cli.", "mirrorlake.__main__")):
        assert refused(text, ("typer", "mirrorlake.cli")) == []
    if name != "mirrorlake.spark.session":
        assert jvm_names(text) == set()


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from time import sleep",
        "def f():\n    import pyspark.sql",
        "from mirrorlake import cli",
        "from mirrorlake.cli.main import x",
        "import os\nos.environ['X']",
        "from os import environ",
        "import os\nos.getenv('X')",
    ],
)
def test_the_check_sees_what_core_must_not_do(text: str) -> None:
    assert refused(text, CORE_REFUSES)


@pytest.mark.parametrize(
    "text",
    ["spark.sparkContext", "x._jdf.y", "df.rdd.map(f)", "from pyspark import SparkContext", "getattr(s, '_jvm')"],
)
def test_the_check_sees_the_jvm(text: str) -> None:
    assert jvm_names(text)


def test_the_check_lets_others_pass() -> None:
    assert (
        refused("from datetime import timedelta\nimport timeit\nfrom mirrorlake.offsets import runs", CORE_REFUSES)
        == []
    )
    assert jvm_names("spark.table('rdd')") == set()


#: Calls of an AdminClient that a group's coordinator answers: librdkafka (2.16) may abort the process in them.
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
        for name in names_of(ast.parse(path.read_text(encoding="utf-8")))
        if name.rpartition(".")[2] in DEADLY
    }
    assert asking == {"groups_worker.py"}
