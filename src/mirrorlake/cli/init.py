"""`mirrorlake init`: the smallest topology file for two clusters."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mirrorlake.cli.context import AS_JSON, Context, typed
from mirrorlake.errors import InputError, some_of

if TYPE_CHECKING:
    from mirrorlake.library.first_file import End, FirstFile


def init(
    context: typer.Context,
    source: str | None = typer.Option(None, help="HOST:PORT of a broker to mirror from."),
    target: str | None = typer.Option(None, help="HOST:PORT of a broker to mirror to."),
    source_security: list[str] = typer.Option(
        [],
        metavar="KEY=VALUE",
        help="How the source is reached, such as protocol=SASL_SSL; may be given again. "
        "Passwords are references: 'password=${env:NAME}'.",
    ),
    target_security: list[str] = typer.Option(
        [], metavar="KEY=VALUE", help="The same of the target."
    ),
    topics: str | None = typer.Option(
        None, help="Regular expressions of whole names, separated by commas."
    ),
    source_name: str = typer.Option("source", help="The alias of the source in the file."),
    target_name: str = typer.Option("target", help="The alias of the target in the file."),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="The file to write. Default: the one of -c."
    ),
    untried: bool = typer.Option(False, "--untried", help="Write without asking the clusters."),
    as_json: bool = AS_JSON,
) -> None:
    """Write the smallest topology file for two clusters, once both answer; what no option says is
    asked for. No file is overwritten, and no secret is written."""
    from mirrorlake.library.first_file import first_file, tried

    shared: Context = context.obj
    path = output or shared.config
    if path.exists():
        raise InputError(f"{path} exists; name another file with -o, or edit it")
    file = first_file(
        _end(source_name, source, "source", "A broker to mirror from", source_security),
        _end(target_name, target, "target", "A broker to mirror to", target_security),
        _asked(topics, "--topics", "Topics to mirror (regular expressions)", ".*"),
    )
    file = file if untried else tried(file)
    try:
        with path.open("x", encoding="utf-8") as opened:
            opened.write(file.text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    document = {
        "file": str(path),
        "flow": file.flow.name,
        "clusters": dict(file.cluster_ids),
        "topics": list(file.topics),
    }
    shared.end(document, as_json, lambda: _show(shared, path, file))


def _end(
    alias: str, address: str | None, side: str, question: str, security: Sequence[str]
) -> "End":
    """A cluster as options say it, else as a person answers."""
    from mirrorlake.library.first_file import End, security_of

    servers = _asked(address, f"--{side}", f"{question} (host:port)")
    if address is None and not security:
        security = _asked_security(side)
    return End(alias, servers, security_of(security, f"--{side}-security"))


def _asked_security(side: str) -> list[str]:
    """How a cluster is reached, by what a person answers: the name of a variable is asked for, and
    never a password. A login by a token, or by a certificate, is said by options."""
    asked = "How it is reached (PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL)"
    protocol = str(typer.prompt(asked, default="PLAINTEXT", err=True)).upper()
    if protocol == "PLAINTEXT":
        return []
    answers = {"protocol": protocol}
    if protocol.endswith("SSL"):
        asked = "File of the certificates to trust, PEM (Enter: those of this system)"
        answers["ca_file"] = typer.prompt(asked, default="", show_default=False, err=True)
    if protocol.startswith("SASL"):
        asked = "Its login (PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512)"
        answers["mechanism"] = str(typer.prompt(asked, default="SCRAM-SHA-512", err=True)).upper()
        answers["username"] = typer.prompt("User name", err=True)
        variable = typer.prompt(
            "Environment variable that holds the password",
            default=f"{side.upper()}_PASSWORD",
            err=True,
        )
        answers["password"] = f"${{env:{variable}}}"
    return [f"{key}={value}" for key, value in answers.items() if value]


def _asked(given: str | None, option: str, question: str, default: str | None = None) -> str:
    """What an option says, else what a person answers. Raises InputError where no person is."""
    if given is not None:
        return given
    if not _at_a_terminal():
        raise InputError(f"{option} is not given, and there is no terminal to ask at; give it")
    return str(typer.prompt(question, default=default, err=True))


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()


def _show(shared: Context, path: Path, file: "FirstFile") -> None:
    """What the clusters answered, and what to type next."""
    for alias, cluster_id in file.cluster_ids.items():
        shared.out.print(f"{alias} answers: cluster {cluster_id}", soft_wrap=True)
    if file.cluster_ids:
        names = some_of(file.topics, 5, ", …")
        which = f": {names}" if names else "; change flows.topics, or make one"
        shared.out.print(f"{len(file.topics)} topics match{which}", soft_wrap=True)
    shared.out.print(f"{path} is written. Next:", soft_wrap=True)
    for variable in sorted(file.variables - os.environ.keys()):
        shared.out.print(f"  export {variable}=…", soft_wrap=True)
    for step in ("plan   # what would be done, without doing it", "run    # do it, until Ctrl-C"):
        shared.out.print(f"  {typed(path, step)}", soft_wrap=True)
