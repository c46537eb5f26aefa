"""Compiles `src/mirrorlake/native/records.c` when a wheel is built, for every platform at once.
Called by hatchling.

zig's C compiler makes code for all of them wherever it runs, and is a package of PyPI
(`[build-system]` of pyproject.toml): building or installing the wheel needs no compiler. An
editable build (`make env`) makes all of them too, since the wheel for Databricks is built from such
a clone, on whatever machine.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path(__file__).resolve().parent / "src" / "mirrorlake" / "native"
SOURCE = NATIVE / "records.c"
#: What a platform is called in the file's name (native/library.py: file_name), and what zig calls
#: it. No libc is linked on Linux, so the one file is for glibc and musl; macOS 11 is the first one
#: with arm64.
TARGETS = {
    "linux-x86_64": "x86_64-linux-musl",
    "linux-aarch64": "aarch64-linux-musl",
    "darwin-x86_64": "x86_64-macos.11.0",
    "darwin-aarch64": "aarch64-macos.11.0",
}
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-nostdlib", "-s")
COMPILED = tuple(NATIVE / f"records-{platform}.so" for platform in TARGETS)


class CompiledLoops(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the compiled loops into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile them. Without zig what an earlier build left is taken, if it was made from this
        source; the wheel is complete without it too, only slower. Raises CalledProcessError if the
        source cannot be compiled."""
        if find_spec("ziglang"):
            compile_all()
        current = [file for file in COMPILED if is_current(file)]
        if len(current) < len(COMPILED):
            self.app.display_warning(
                "no ziglang here: the wheel lacks native/records-*.so, and is slower"
            )
        if version == "standard":  # an editable one finds them where they are
            build_data["force_include"].update(
                {str(file): f"mirrorlake/native/{file.name}" for file in current}
            )


def compile_all() -> None:
    """Compile the source for every platform; the same source gives the same bytes."""
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(SOURCE, work)
        environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": work, "ZIG_LOCAL_CACHE_DIR": work}
        for file, target in zip(COMPILED, TARGETS.values(), strict=True):
            to = ("-target", target, f'-DCOMPILED_FROM="{digest()}"', "-o", file.name)
            command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, *to, SOURCE.name]
            subprocess.run(command, cwd=work, env=environment, check=True)
            replace(file, Path(work, file.name).read_bytes())


def replace(file: Path, content: bytes) -> None:
    """Have a file hold this. It is not written over: a process may have it loaded, and would die of
    that."""
    if not file.exists() or file.read_bytes() != content:
        beside = file.with_name(f"{file.name}.{os.getpid()}")
        beside.write_bytes(content)
        beside.replace(file)


def digest() -> str:
    """Of the source, for the file that is made from it."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()


def is_current(file: Path) -> bool:
    """Whether a file is there, and was made from the source as it is."""
    return file.exists() and digest().encode() in file.read_bytes()
