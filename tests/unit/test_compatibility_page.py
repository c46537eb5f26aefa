"""What docs/compatibility.md says was tried is what is pinned, and what it calls unsupported is not
in the code."""

import re
from importlib.metadata import metadata, requires
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from mirrorlake.config.security import Security
from mirrorlake.spark.jars import DELTA_VERSION, KAFKA_VERSION, SPARK_MINORS
from mirrorlake.spark.java import OLDEST_JAVA
from tests.support.matrix_table import PYTHONS, parted

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
TRIED, EXPECTED, UNSUPPORTED = (
    PAGE.partition(f"## {title}")[2].partition("\n## ")[0]
    for title in ("Tried", "Expected to work, not tried", "Not supported")
)

#: The minor version of Spark that `make env` installs.
(LOCKED_SPARK,) = re.findall(
    r'^name = "pyspark"\nversion = "(\d+\.\d+)\.\d+"$',
    (ROOT / "uv.lock").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def pinned(package: str) -> str:
    (found,) = re.findall(rf'"{re.escape(package)}(?:\[\w+\])?[=>]=([\d.]+)', PROJECT)
    return str(found)


@pytest.mark.parametrize(
    "said",
    [
        f"Apache Kafka {KAFKA_VERSION},",
        f"confluent-kafka {pinned('confluent-kafka')} ",
        f"| Spark | {LOCKED_SPARK}, in which it is developed: ",
        f"{' and '.join(MINOR for MINOR in SPARK_MINORS if MINOR != LOCKED_SPARK)} are allowed",
        f"delta-spark {DELTA_VERSION};",
        f"deltalake {pinned('deltalake')} ",
        f"DuckDB {pinned('duckdb')} ",
        f"`databricks-bundles` {pinned('databricks-bundles')} ",
        f"| Java | {OLDEST_JAVA} |",
    ],
)
def test_versions_are_those_that_are_pinned(said: str) -> None:
    assert said in TRIED


def test_the_runtime_is_the_one_of_the_bundle() -> None:
    bundle: dict[str, Any] = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
    runtime = re.match(r"\d+\.\d+", bundle["variables"]["spark_version"]["default"])
    said = re.search(r"the bundle sets runtime ([\d.]+) LTS, which is Spark ([\d.]+),", EXPECTED)
    assert runtime is not None and said is not None
    assert said[1] == runtime[0] and said[2] in SPARK_MINORS


def allowed(package: str) -> SpecifierSet:
    """The versions that the package's own metadata allow, those of the wheel."""
    named = [Requirement(text) for text in requires("mirrorlake") or []]
    (found,) = {each.specifier for each in named if each.name == package}  # of several extras
    return found


def test_the_packages_metadata_allow_what_the_page_says() -> None:
    """What was run, and each Spark that Delta has a jar for; and no other."""
    spark = allowed("pyspark")
    python = SpecifierSet(metadata("mirrorlake")["Requires-Python"])
    for row in parted(PAGE)[1]:
        versions = [cell.strip() for cell in row.strip("|").split("|")]
        assert versions[0] in spark and versions[2] in python, row
        assert versions[1] == DELTA_VERSION, f"{row}: run make test-matrix again"
    assert all(f"{minor}.{patch}" in spark for minor in SPARK_MINORS for patch in (0, 5))
    major, minor = (int(part) for part in SPARK_MINORS[-1].split("."))
    assert f"| Spark {major}.{minor + 1} |" in UNSUPPORTED
    assert f"{major}.{minor + 1}.0" not in spark and "3.5.9" not in spark
    assert all(minor in python for minor in PYTHONS) and "3.9" not in python


def test_every_way_to_log_in_is_named_as_tried_and_no_other_one_exists() -> None:
    known = set(get_args(get_args(Security.model_fields["mechanism"].annotation)[0]))
    assert known and all(mechanism in TRIED for mechanism in known)
    assert (
        not known & {"GSSAPI", "AWS_MSK_IAM"}
        and "GSSAPI" in UNSUPPORTED
        and "AWS_MSK_IAM" in UNSUPPORTED
    )


def test_the_packages_that_are_named_as_not_supported_are_not_imported() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert not re.findall(r"schema_registry|aws_msk_iam|gssapi", code.replace('"GSSAPI"', ""))
