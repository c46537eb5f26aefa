"""`mirrorlake import`: MirrorMaker's own configuration files as a topology file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mirrorlake.cli.context import AS_JSON, Context
from mirrorlake.errors import InputError
from mirrorlake.terminal import plain_table

if TYPE_CHECKING:
    from rich.console import Console

    from mirrorlake.mm2.importer.entries import SourceFile
    from mirrorlake.mm2.importer.read import Imported


def import_(
    context: typer.Context,
    files: list[Path] = typer.Argument(
        ...,
        metavar="FILE...",
        help="mm2.properties, connectors as JSON, Strimzi's resource, or MirrorMaker 1's.",
    ),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="Write the topology to this file instead of stdout."
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite files that are there."),
    kubernetes: Path | None = typer.Option(
        None, "--kubernetes", metavar="DIR", help="Write the manifests of a pod here, with it."
    ),
    beside: bool = typer.Option(
        False,
        "--beside",
        help="Write a file for a run beside MirrorMaker 2, with other names of topics.",
    ),
    whitelist: str | None = typer.Option(
        None, "--whitelist", "--include", help="MirrorMaker 1: its topics."
    ),
    blacklist: str | None = typer.Option(None, help="MirrorMaker 1: topics it left out."),
    num_streams: str | None = typer.Option(
        None, "--num.streams", help="MirrorMaker 1: accepted, and not needed."
    ),
    source_alias: str | None = typer.Option(
        None, help="MirrorMaker 1: name of the consumer's cluster."
    ),
    target_alias: str | None = typer.Option(
        None, help="MirrorMaker 1: name of the producer's cluster."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Make a topology file of MirrorMaker's files, and account for every key of them."""
    from mirrorlake.mm2.importer.document import for_a_pod, pod_note, topology_text
    from mirrorlake.mm2.importer.mirrormaker1 import Options
    from mirrorlake.mm2.importer.read import import_files

    shared: Context = context.obj
    if output is not None and kubernetes is not None:
        raise InputError("-o and --kubernetes are two places for one file; give one of them")
    if output is not None and output.exists() and not force:
        raise InputError(f"{output} exists; name another file with -o, or give --force")
    options = Options(whitelist, blacklist, num_streams, source_alias, target_alias)
    imported = import_files([_read(path) for path in files], options, beside)
    document = imported.topology if kubernetes is None else for_a_pod(imported.topology)
    text = topology_text(
        document, [path.name for path in files], imported.variables, imported.mounts
    )
    if output is not None:
        _write(output, text)
    if kubernetes is not None:
        _write_manifests(kubernetes, text, imported, force=force)
        imported.report["notes"].append(pod_note(str(kubernetes), imported.variables))
    if as_json:
        shared.answer({"topology": document, **imported.report})
        return
    to_files = output is not None or kubernetes is not None
    if not to_files:
        typer.echo(text, nl=False)
    _show(shared.out if to_files else shared.err, imported)


def _read(path: Path) -> "SourceFile":
    from mirrorlake.mm2.importer.entries import SourceFile

    try:
        return SourceFile(str(path), path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def _write_manifests(folder: Path, topology: str, imported: "Imported", *, force: bool) -> None:
    from importlib.resources import files

    from mirrorlake.mm2.importer.document import manifests

    template = files("mirrorlake.mm2.importer") / "deployment.yaml"
    made = manifests(template.read_text("utf-8"), imported.variables, imported.mounts)
    texts = {"mirrorlake.yml": topology, **made}
    there = next((folder / name for name in texts if (folder / name).exists()), None)
    if there is not None and not force:
        raise InputError(f"{there} exists; name another folder, or give --force")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}") from None
    for name, text in texts.items():
        _write(folder / name, text)


def _show(console: "Console", imported: "Imported") -> None:
    """What changes what arrives first; then what is not as the files say; the rest is for looking
    things up."""
    report = imported.report
    console.print("What arrives is not what MirrorMaker brings:", style="red")
    for difference in imported.arrives:
        console.print(f"- {difference}", soft_wrap=True)
    for title, name, column in (
        ("Not supported", "not_supported", "reason"),
        ("Carried over", "carried", "to"),
        ("Not needed", "not_needed", "reason"),
    ):
        rows: list[dict[str, Any]] = report[name]
        if not rows:
            continue
        table = plain_table("file, line", "key", column, title=title)
        for row in rows:
            place = f"{Path(row['file']).name}, {row['line']}" if row["line"] else row["file"]
            text = row[column].replace(", ", "\n") if column == "to" else row[column]
            table.add_row(place, row["key"], text, style="red" if name == "not_supported" else None)
        console.print(table)
    for note in report["notes"][len(imported.arrives) :]:
        console.print(f"- {note}", soft_wrap=True)
