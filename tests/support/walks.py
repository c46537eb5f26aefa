"""What a person types, in a folder, and reads: for tests that walk through pages word for word."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
#: How long a person waits for a command, seconds.
PATIENCE = 180.0
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def block_of(page: str, beginning: str) -> list[str]:
    """The commands of the block of a page that has a line which begins so, without remarks."""
    blocks = _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    (block,) = [block for block in blocks if re.search(rf"^ *{beginning}", block, re.MULTILINE)]
    lines = [line for line in block.splitlines() if line and not line.startswith("source ")]
    return [re.sub(r"\s{2,}#.*", "", line) for line in lines]


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a shell in a folder, whose programs in `bin` come first."""
    path = f"{folder / 'bin'}:{BIN}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "MIRRORLAKE_CORES": "2"}


def typed(folder: Path, line: str, code: int = 0) -> str:
    """What a shell in a folder writes to a line, or to lines of which none may fail."""
    done = subprocess.run(
        ["bash", "-ec", line],
        cwd=folder,
        env=surroundings(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    said = done.stdout + done.stderr
    assert done.returncode == code, f"{line}\n{said}"
    assert "Traceback" not in said, f"{line}\n{said}"
    return said


@contextmanager
def local_clusters(folder: Path, *options: str) -> Iterator[dict[str, str]]:
    """The addresses of the clusters of `mirrorlake local up` in a folder, by their names."""
    try:
        typed(folder, " ".join(["mirrorlake local up", *options]))
        document = yaml.safe_load((folder / "mirrorlake.yml").read_text(encoding="utf-8"))
        yield {name: of["bootstrap_servers"] for name, of in document["clusters"].items()}
    finally:
        typed(folder, "mirrorlake local down")


def mapped(folder: Path, topic: str, count: int) -> bool:
    """Whether so many records of a partition of a topic are on the target, by the map."""
    query = (
        f"SELECT coalesce(max(source_first + record_count), 0) >= {count} AS there "
        f"FROM offset_translation WHERE topic = '{topic}'"
    )
    asked = subprocess.run(
        ["mirrorlake", "sql", query, "--json"],
        cwd=folder,
        env=surroundings(folder),
        capture_output=True,
        text=True,
    )
    return "true" in asked.stdout


@contextmanager
def running(folder: Path, words: Sequence[str], end: signal.Signals) -> Iterator[Path]:
    """A command for the time of the block, with what it says in the file that is given; it ends
    with 0 by the signal."""
    log = folder / "run.log"
    with log.open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            words, cwd=folder, env=surroundings(folder), stderr=said, stdout=said
        )
    try:
        yield log
        assert process.poll() is None, log.read_text(encoding="utf-8")
    finally:
        process.send_signal(end)
        assert process.wait(60) == 0, log.read_text(encoding="utf-8")


def arrives(folder: Path, topic: str, count: int) -> None:
    """Wait until the map has so many records of a partition of a topic."""
    until(lambda: mapped(folder, topic, count), f"{count} records of {topic}", PATIENCE)
