"""The bundle as the tests see it: its files, with variables filled in as a deployment would, and
its wheel."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
#: What a team gives for the variables that have no default.
GIVEN = {
    "catalog": "main",
    "warehouse": "0123456789abcdef",
    "readers": "replication-readers",
    "operators": "replication-operators",
    "notify": "on-call@example.com",
    "node_type": "i3.xlarge",
}
#: What a deployment knows of the deploying user, as the CLI tells it.
DEPLOYER = {"userName": "somebody@example.com", "short_name": "somebody"}
_REFERENCE = re.compile(r"\$\{([a-zA-Z_.]+)\}")


def root_file() -> dict[str, Any]:
    """databricks.yml."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
    return found


def resource_files() -> dict[Path, dict[str, Any]]:
    """The files that databricks.yml includes, by path."""
    found: dict[Path, dict[str, Any]] = {}
    for pattern in root_file()["include"]:
        paths = sorted(ROOT.glob(pattern))
        assert paths, f"include {pattern} matches nothing"
        found.update({path: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths})
    return found


def raw_resources() -> dict[str, dict[str, Any]]:
    """{kind: {key: resource}} as written."""
    merged: dict[str, dict[str, Any]] = {}
    for document in resource_files().values():
        for kind, items in document["resources"].items():
            for key, item in items.items():
                assert key not in merged.setdefault(kind, {}), f"{kind}.{key} is written twice"
                merged[kind][key] = item
    return merged


def resources(target: str = "prod", **given: object) -> dict[str, dict[str, Any]]:
    """The same of one target, with every `${…}` filled in; KeyError for one that refers to
    nothing."""
    root = root_file()
    chosen = root["targets"][target]
    raw = merged(raw_resources(), chosen.get("resources", {}))
    variables = {name: item.get("default") for name, item in root["variables"].items()}
    known = {
        "var": variables | chosen.get("variables", {}) | GIVEN | given,
        "resources": raw,
        "bundle": {"name": root["bundle"]["name"], "target": target},
        "workspace": {"current_user": DEPLOYER},
    }
    filled: dict[str, dict[str, Any]] = fill(raw, known)
    return filled


def merged(below: Any, above: Any) -> Any:
    """What a target's `resources` make of those of all targets: mappings are merged, all else is
    overridden."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {
        key: merged(below[key], item) if key in below else item for key, item in above.items()
    }


def fill(value: Any, known: Mapping[str, Any]) -> Any:
    """A value with its references filled in; one that is all of a text keeps its type, as in a
    bundle."""
    if isinstance(value, dict):
        return {key: fill(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, known) for item in value]
    if not isinstance(value, str):
        return value
    if (whole := _REFERENCE.fullmatch(value)) is not None:
        return fill(_at(known, whole[1]), known)
    return _REFERENCE.sub(lambda found: str(fill(_at(known, found[1]), known)), value)


def _at(known: Mapping[str, Any], path: str) -> Any:
    found: Any = known
    for step in path.split("."):
        found = found[step]
    assert found is not None, f"{path} has no value"
    return found


def strings(value: object) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value


def python_for_builds() -> list[str] | None:
    """How to build a wheel without a network: hatchling in this environment, else None."""
    return (
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
        if find_spec("hatchling")
        else None
    )


def uv() -> str | None:
    """The `uv` of this machine, of `make env`, or None."""
    beside = ROOT / ".uv" / "bin" / "uv"
    return os.environ.get("UV") or shutil.which("uv") or (str(beside) if beside.is_file() else None)


def build_environment(path_first: Path | None = None) -> dict[str, str]:
    """An environment in which `python3` is the one of the tests, and `uv` is found."""
    found = [str(Path(sys.executable).parent), *([str(Path(str(uv())).parent)] if uv() else [])]
    if path_first is not None:
        found.insert(0, str(path_first))
    return {**os.environ, "PATH": os.pathsep.join([*found, os.environ["PATH"]])}


def build_wheel(directory: Path) -> Path:
    """The wheel that everybody gets, as `uv build` makes it."""
    command = python_for_builds()
    if command is not None:
        command += ["-d", str(directory)]
    else:
        assert uv() is not None, "neither hatchling nor uv is here: run `make env`"
        command = [str(uv()), "build", "--wheel", "--out-dir", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return next(directory.glob("*.whl"))


def clone_in(folder: Path) -> Path:
    """A copy of what a clone holds, in a folder, so that nothing is written beside the sources."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(
        listed, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "clone" / name)
    return folder / "clone"
