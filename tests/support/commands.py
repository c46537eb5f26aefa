"""Commands in processes of their own, as a shell starts them; most have no Spark: importing pyspark
fails there, and names the module that did it.

A cold command over few records spends most of its CPU on importing and on translating SQL, so each
is forked off a process that has what the commands before it imported, and the texts in `sql/`
translated.
"""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from types import ModuleType
from typing import Any

from mirrorlake.errors import InputError
from mirrorlake.lake.dialect import to_duckdb
from mirrorlake.native import SWITCH

ROOT = Path(__file__).parents[2]


class Trap:
    """A finder of modules that refuses Spark's, and pandas, which costs a command a quarter of a
    second of CPU and gives it nothing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        if name.split(".")[0] in ("pyspark", "py4j", "pandas"):
            raise AssertionError(f"{name} was reached for")
        return None


def mirrorlake(topology: Path, *words: str, code: int = 0) -> Any:
    """What a command answers as JSON, in a process that cannot import Spark; where records go
    through this process as Python's objects, Spark lands them."""
    line = ["-c", str(topology), *words, "--json"]
    if os.environ.get(SWITCH) == "off":
        done = subprocess.run(
            [sys.executable, "-m", "mirrorlake", *line],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
    else:
        done = _forks().run(line, ROOT, trap=True)
    assert done.returncode == code, done.stderr[-4000:]
    assert "was reached for" not in done.stderr, done.stderr[-4000:]
    assert "Traceback" not in done.stderr, done.stderr[-4000:]
    return json.loads(done.stdout) if done.stdout.strip() else None


def exit_code(topology: Path, *words: str, **environment: str) -> int:
    """What a command ends with, in a process that cannot import Spark; -9 where it was killed. Its
    output goes to run.log beside the topology file, as that of `start_command`."""
    line = ["-c", str(topology), *words]
    done = _forks().run(line, topology.parent, trap=True, MIRRORLAKE_CORES="2", **environment)
    with (topology.parent / "run.log").open("a", encoding="utf-8") as log:
        log.write(done.stdout + done.stderr)
    return done.returncode


def forked(
    words: Sequence[str], folder: Path, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """How a command ends that is run in a folder; it may import Spark."""
    return _forks().run(words, folder, trap=False, **environment)


def open_incidents(
    topology: Path, code: int
) -> list[tuple[str, str, int | None, int | None, int | None]]:
    """What `status` lists: kind, topic, partition and offsets."""
    status = mirrorlake(topology, "status", code=code)
    assert status["healthy"] is (code == 0)
    columns = ("kind", "topic", "partition", "first_offset", "last_offset")
    return sorted(tuple(row[name] for name in columns) for row in status["incidents"])


class Forks:
    """The process that commands are forked off; it ends with this one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.commands"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )

    def run(
        self, words: Sequence[str], folder: Path, trap: bool, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in a folder, in the environment of this process as it is now, and more of
        it; one at a time. With `trap` it cannot import Spark."""
        request = {
            "words": words,
            "folder": str(folder),
            "trap": trap,
            "environment": {**os.environ, **environment},
        }
        with self._lock, TemporaryDirectory() as place:
            try:
                code = self._ask({**request, "place": place})
            except BaseException:  # the test is over its time: the command must not outlive it
                os.killpg(self._process.pid, signal.SIGKILL)
                _forks.cache_clear()
                raise
            out, err = (Path(place, name).read_text("utf-8") for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(words, code, out, err)

    def _ask(self, request: dict[str, Any]) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@cache
def _forks() -> Forks:
    return Forks()


def _translate() -> None:
    """Have DuckDB's text of all views and queries."""
    for kind in ("views", "queries"):
        for file in (files("mirrorlake") / "sql" / kind).iterdir():
            with suppress(InputError):  # it changes a table, or is made of parts
                to_duckdb(file.read_text(encoding="utf-8"))


def _serve() -> dict[str, Any]:
    """Fork a process for each request that comes and answer with the code that it ended with;
    returns in such a process, with its request. At the end of requests this process ends."""
    _translate()
    while line := sys.stdin.readline():
        request: dict[str, Any] = json.loads(line)
        gc.freeze()  # else a collection in the forked process copies all that is here
        child = os.fork()
        if not child:
            return request
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        imported = Path(request["place"], "imported")
        for name in imported.read_text("utf-8").split() if imported.exists() else ():
            import_module(name)
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()
    sys.exit()


def _become(request: dict[str, Any]) -> list[str]:
    """Take the environment and the files of a request; gives the words of its command."""
    place = Path(request["place"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until the process ends
    for number, name in ((0, os.devnull), (1, place / "stdout"), (2, place / "stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
    if request["trap"]:
        sys.meta_path.insert(0, Trap())
        atexit.register(_note_imported, place / "imported")  # what has no Spark, for all
    return list(request["words"])


def _note_imported(file: Path) -> None:
    names = [name for name in sys.modules if name.partition(".")[0] == "mirrorlake"]
    file.write_text("\n".join(names), encoding="utf-8")


if __name__ == "__main__":
    from mirrorlake.cli.main import main

    main(_become(_serve()))


class Answer:
    """How a command ended."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        words = ["-c", str(directory / "mirrorlake.yml"), *arguments]
        started = time.monotonic()
        done = forked(words, directory, MIRRORLAKE_CORES="1")
        self.seconds = time.monotonic() - started
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def assert_one_sentence(self, *parts: str, code: int = 2, answers: bool = False) -> None:
        """One line of ours on stderr that holds `parts`, nothing on stdout (unless it `answers` all
        the same), and no traceback."""
        assert self.code == code, self.err
        assert "Traceback" not in self.err
        said = [line for line in self.err.splitlines() if line.startswith("mirrorlake: ")]
        assert len(said) == 1, self.err
        for part in parts:
            assert part in said[0], said[0]
        assert answers or self.out == ""
