"""The house from the ground up, as DESIGN.md tells it: in which package a module lies, and on which
floor that is."""

from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
ROOT = SRC / "mirrorlake"
FLOORS: tuple[tuple[str, ...], ...] = (
    ("attempts", "native", "threads"),
    ("caches", "durations", "errors", "failpoints", "heaps", "no_pandas", "processes", "terminal"),
    ("extras", "naming", "offsets", "worker"),
    ("config",),
    ("kafka", "spark"),
    ("lake",),
    ("landing", "produce", "mm2", "mm2.importer"),
    ("control",),
    ("groups", "checks"),
    ("run",),
    ("failover", "verify", "resend", "forget", "trace", "tracking", "metrics")
    + ("dashboard", "devtools.local"),
    ("migrate",),
    ("library",),
    ("devtools", "devtools.demo", "devtools.bench", "testing"),
    ("cli",),
    ("notebook",),
    ("__main__",),
)


def package(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts)


def room(module: str) -> str:
    """The package that a module of mirrorlake lies in; a module that lies in none is its own."""
    # what `import mirrorlake` gives
    inner = module.removeprefix("mirrorlake").lstrip(".") or "library"
    folders = [
        folder
        for floor in FLOORS
        for folder in floor
        if inner == folder or inner.startswith(f"{folder}.")
    ]
    return max(folders, key=len, default=inner)
