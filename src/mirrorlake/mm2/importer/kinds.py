"""Detects which of MirrorMaker's configuration files a file is, if any."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping

import yaml

from mirrorlake.errors import InputError
from mirrorlake.mm2.importer import connect, mirrormaker1
from mirrorlake.mm2.importer.entries import Entry, SourceFile, read_json, read_properties

#: A connector other than MirrorMaker 2's: Connect's answers list all of them.
FOREIGN = "foreign"
KINDS = {
    "dedicated": "MirrorMaker 2's dedicated mode",
    "connector": "Kafka Connect",
    FOREIGN: "other connectors",
    "mirrormaker1": "MirrorMaker 1",
}
#: How JSON begins: an object, or a list of objects.
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[\]{])")
#: Every file of the dedicated mode has such a key; `clusters` may begin a line of any text.
_OF_DEDICATED = re.compile(r"\S+->\S+\.\S+|\S+\.bootstrap\.servers")
_READ = (
    "give mm2.properties, connectors as JSON, a resource KafkaMirrorMaker2 of Strimzi, or the two "
    "files of MirrorMaker 1"
)


def parts_of(file: SourceFile) -> list[tuple[str, list[Entry]]]:
    """A file's connectors or settings, with kinds. Raises InputError without a known kind."""
    if file.data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise InputError(f"{file.name} is UTF-16, as PowerShell's > writes it; save it as UTF-8")
    if b"\0" in file.data:
        raise InputError(f"{file.name} is not a text file; {_READ}")
    # A line [section], as Python's configparser writes it, is a key to java.util.Properties.
    is_json = file.name.lower().endswith(".json") or bool(_JSON.match(file.data))
    groups = read_json(file) if is_json else [read_properties(file)]
    return [
        (_kind(file, {entry.key: entry for entry in entries}, is_json), entries)
        for entries in groups
    ]


def _kind(file: SourceFile, settings: Mapping[str, Entry], is_json: bool) -> str:
    if "connector.class" in settings:
        return "connector" if connect.is_mirror(settings) else FOREIGN
    if is_json:
        raise _none_of_them(file, "it has no key connector.class")
    clusters = settings.get("clusters")
    if clusters is not None and any(_OF_DEDICATED.fullmatch(key) for key in settings):
        return "dedicated"
    if mirrormaker1.looks_like(settings):
        return "mirrormaker1"
    if clusters is None:
        why = "it has no key clusters, connector.class or bootstrap.servers"
        raise _none_of_them(file, why)
    if _is_topology(file):
        raise InputError(
            f"{file.name} is a topology file of mirrorlake already, and no file of MirrorMaker: "
            f"`mirrorlake -c {file.name} plan` says what it would do"
        )
    raise _none_of_them(
        file, f"line {clusters.line} begins with clusters, and no key is A->B.enabled for a flow"
    )


def _none_of_them(file: SourceFile, why: str) -> InputError:
    return InputError(f"{file.name} is no file of MirrorMaker that can be imported: {why}; {_READ}")


def _is_topology(file: SourceFile) -> bool:
    try:
        document = yaml.safe_load(file.data)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"clusters", "flows"} <= document.keys()
