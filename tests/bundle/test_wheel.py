"""The wheel that everybody gets: installed into an empty environment, it has all it needs, or names
what it lacks."""

import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from hatch_build import COMPILED, NATIVE, SOURCE, is_current
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.native.library import file_name
from tests.support.bundle import ROOT, build_environment, build_wheel, clone_in, uv

#: How a library for a platform begins, and where it says for which processor: ELF in two bytes,
#: Mach-O in four.
MACHINES = {
    "records-linux-x86_64.so": (b"\x7fELF", slice(18, 20), 62),
    "records-linux-aarch64.so": (b"\x7fELF", slice(18, 20), 183),
    "records-darwin-x86_64.so": (b"\xcf\xfa\xed\xfe", slice(4, 8), 0x01000007),
    "records-darwin-aarch64.so": (b"\xcf\xfa\xed\xfe", slice(4, 8), 0x0100000C),
}


def test_everything_that_is_not_code_is_in_the_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path)) as file:
        packed = {name.removeprefix("mirrorlake/") for name in file.namelist()}
    kept = [
        path
        for path in (ROOT / "src" / "mirrorlake").rglob("*")
        if path.is_file() and "__pycache__" not in str(path)
    ]
    assert {str(path.relative_to(ROOT / "src" / "mirrorlake")) for path in kept} <= packed


def loops_of(wheel: Path) -> dict[str, bytes]:
    """The compiled loops that a wheel holds, by name."""
    with zipfile.ZipFile(wheel) as file:
        names = [
            name
            for name in file.namelist()
            if name.startswith("mirrorlake/native/") and name.endswith(".so")
        ]
        return {Path(name).name: file.read(name) for name in names}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return clone_in(tmp_path)


def built_without_compiler(clone: Path) -> tuple[Path, str]:
    """The wheel that hatchling makes of it in this environment, and what it says."""
    if find_spec("ziglang"):
        pytest.skip("ziglang is installed here")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(clone / "out")]
    done = subprocess.run(
        command, cwd=clone, capture_output=True, text=True, timeout=500, check=True
    )
    return next((clone / "out").glob("*.whl")), done.stdout + done.stderr


def test_the_loops_that_are_tested_are_made_from_the_source_as_it_is() -> None:
    stale = [file.name for file in COMPILED if not is_current(file)]
    assert stale == [], f"{SOURCE.name} or its compiler changed since: run `make env`"


@pytest.mark.parametrize("file", COMPILED, ids=lambda file: str(file.name))
def test_each_file_is_for_the_platform_of_its_name(file: Path) -> None:
    magic, place, machine = MACHINES[file.name]
    content = file.read_bytes()
    assert content.startswith(magic)
    assert int.from_bytes(content[place], "little") == machine
    assert os.fsencode(ROOT) not in content, "whoever builds it, wherever, gets the same bytes"


def test_this_machine_has_its_file_by_the_name_that_python_asks_for() -> None:
    names = {
        file_name(system, machine)
        for system in ("Linux", "Darwin")
        for machine in ("x86_64", "AMD64", "arm64")
    }
    assert names == {file.name for file in COMPILED} == set(MACHINES)
    if platform.system() in ("Linux", "Darwin"):
        assert (NATIVE / file_name(platform.system(), platform.machine())).is_file()


def test_without_a_compiler_a_wheel_holds_the_loops_that_were_made_from_its_source(
    clone: Path,
) -> None:
    native = clone / NATIVE.relative_to(ROOT)
    for file in COMPILED:
        shutil.copy(file, native)
    wheel, said = built_without_compiler(clone)
    assert loops_of(wheel) == {file.name: file.read_bytes() for file in COMPILED}
    assert "ziglang" not in said
    (native / SOURCE.name).write_text(SOURCE.read_text() + "/* newer */\n")
    wheel, said = built_without_compiler(clone)
    assert loops_of(wheel) == {}
    assert "no ziglang here" in said


def test_a_deployment_does_not_need_a_network(clone: Path) -> None:
    offline = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "PIP_NO_INDEX": "1"}
    script = [sys.executable, "bundles/build_wheel.py"]
    subprocess.run(
        script,
        cwd=clone,
        check=True,
        env=build_environment() | offline,
        capture_output=True,
        timeout=500,
    )
    (wheel,) = (clone / "dist" / "databricks").glob("*.whl")
    assert loops_of(wheel) == {} or find_spec("ziglang")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_wheel_of_a_clone_holds_the_loops_for_every_platform(clone: Path) -> None:
    """Built as a release is, with the compiler that pyproject.toml names; from the source
    distribution too."""
    if (found := uv()) is None:
        pytest.skip("no uv here: run `make env`")
    done = subprocess.run(
        [found, "build", "--out-dir", "out"], cwd=clone, capture_output=True, text=True, timeout=500
    )
    if done.returncode and any(
        words in done.stderr for words in ("error sending request", "network", "dns")
    ):
        pytest.skip(f"no network, and uv has no ziglang in its cache: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    (wheel,) = (clone / "out").glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert loops_of(wheel) == {file.name: file.read_bytes() for file in COMPILED}, (
        "the same bytes wherever it is made"
    )


def install(wheel: Path, environment: Path, extra: str = "") -> Path:
    """Install a wheel into an empty environment, and return the folder of its commands. Skips
    without a network."""
    python = environment / "bin" / "python"
    named = f"{wheel}[{extra}]" if extra else str(wheel)
    if (found := uv()) is not None:
        make = [[found, "venv", "--quiet", "--python", sys.executable, str(environment)],
                [found, "pip", "install", "--quiet", "--python", str(python), named]]  # fmt: skip
    else:
        make = [[sys.executable, "-m", "venv", str(environment)],
                [str(python), "-m", "pip", "install", "--quiet", named]]  # fmt: skip
    for command in make:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5000)
        if done.returncode and any(
            words in done.stderr for words in ("error sending request", "network", "dns")
        ):
            pytest.skip(f"no network, and not all is in the cache: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr
    return python.parent


#: The machine's own variables that a command needs; those of the tests stay behind.
KEPT = ("HOME", "JAVA_HOME", "MIRRORLAKE_CACHE", "MIRRORLAKE_CORES")


def run_installed(commands: Path, work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a folder, without anything of the environment of the tests."""
    own = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    own |= {name: os.environ[name] for name in KEPT if name in os.environ}
    command = [str(commands / "mirrorlake"), *words]
    return subprocess.run(command, cwd=work, env=own, capture_output=True, text=True, timeout=5000)


def test_the_wheel_alone_answers_and_names_what_else_there_is(tmp_path: Path) -> None:
    """Without an extra: few packages, none of which is Spark's, and for the rest one line to
    type."""
    commands = install(build_wheel(tmp_path), tmp_path / "empty")
    (folder,) = (tmp_path / "empty" / "lib").glob("python*/site-packages")
    names = {path.name.partition("-")[0].lower() for path in folder.glob("*.dist-info")}
    assert {"mirrorlake", "confluent_kafka", "duckdb"} <= names and len(names) <= 25
    assert not names & {
        "pyspark",
        "pandas",
        "delta_spark",
        "altair",
        "mlflow_skinny",
        "sqlalchemy",
        "javaproperties",
    }
    tables = PathTables(tmp_path / "lake")
    for name in ("records", "offset_map", "clusters"):
        tables.create(name)
    clusters = {name: {"bootstrap_servers": "127.0.0.1:1"} for name in ("east", "west")}
    file = {
        "clusters": clusters,
        "lake": {"path": "lake"},
        "flows": {"east->west": {"topics": ["orders"]}},
    }
    (tmp_path / "mirrorlake.yml").write_text(json.dumps(file), encoding="utf-8")
    done = run_installed(commands, tmp_path, "sql", "SELECT count(*) AS n FROM records", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [{"n": 0}]), done.stderr
    for words, extra in (
        ("dashboard --html page.html", "dashboard"),
        ("import mirrorlake.yml", "import"),
        ("sql --engine spark SELECT", "spark"),
        ("local status", "spark"),
    ):
        done = run_installed(commands, tmp_path, *words.split())
        assert done.returncode == 2, done.stderr
        assert done.stderr.splitlines()[-1].endswith(f"pip install 'mirrorlake[{extra}]'"), (
            done.stderr
        )


def installed_with_spark(folder: Path) -> tuple[Path, Path]:
    """The folder of the commands of a wheel in an empty environment, and one to work in."""
    work = folder / "work"
    work.mkdir()
    return install(build_wheel(folder), folder / "empty", "spark"), work


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_the_demo_runs_from_a_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    commands, work = installed_with_spark(tmp_path)
    done = run_installed(commands, work, "demo")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_first_steps_from_a_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    commands, work = installed_with_spark(tmp_path)
    try:
        for words in ("local up --load", "plan", "run --once", "status --json"):
            done = run_installed(commands, work, *words.split())
            assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        (flow,) = json.loads(done.stdout)["flows"]
        assert flow["flow"] == "east->west"
    finally:
        run_installed(commands, work, "local", "down")


@pytest.mark.slow
@pytest.mark.parametrize("runner", [("--from",), ("pipx", "run", "--spec")], ids=["uvx", "pipx"])
def test_tools_that_run_a_package_run_the_wheel(runner: tuple[str, ...], tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    if (known := uv()) is None:
        pytest.skip("no uv here, which brings uvx, and runs pipx")
    command = [known, "tool", "run", *runner, str(wheel), "mirrorlake", "version"]
    homes = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **homes}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "0.1.0", done.stderr[-2000:]
