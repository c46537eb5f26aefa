"""Kubernetes resources as YAML or JSON: fields with their path and line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from mirrorlake.errors import InputError
from mirrorlake.mm2.importer.entries import Entry, SourceFile

_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True)
class Field:
    """A part of a resource; `line`, from 1, is that of its name. Its own parts are made on demand,
    so that repeated YAML anchors are not expanded."""

    file: str
    path: str
    line: int
    node: yaml.Node = field(repr=False)
    loader: yaml.SafeLoader = field(repr=False)

    def parts(self) -> dict[str, "Field"]:
        """An object's fields by name, without nulls. Raises InputError for anything else."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("must be an object")
        try:
            self.loader.flatten_mapping(self.node)
        except yaml.YAMLError:
            raise self.wrong("merges what is no object (<<)") from None
        dot = "." if self.path else ""
        return {
            name.value: self._part(f"{dot}{name.value}", name, value)
            for name, value in self.node.value
            if isinstance(name, yaml.ScalarNode) and value.tag != _NULL
        }

    def part(self, *names: str) -> "Field | None":
        """The field at the end of a path of names, None if any of the path is missing."""
        part: Field | None = self
        for name in names:
            part = part.parts().get(name) if part is not None else None
        return part

    def needed(self, name: str) -> "Field":
        """A required field. Raises InputError."""
        part = self.part(name)
        if part is None:
            raise self.wrong(f"has no {name}, which Strimzi asks for")
        return part

    def each(self) -> "list[Field]":
        """The fields of a list. Raises InputError for anything else."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong("must be a list")
        return [self._part(f"[{at}]", value, value) for at, value in enumerate(self.node.value)]

    def text(self) -> str:
        """A text, number or boolean as Kafka gets it. Raises InputError for anything else."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.wrong("must be a string, a number, true or false")
        try:
            value = self.loader.construct_object(self.node)
        except (yaml.YAMLError, ValueError):
            raise self.wrong("must be a string, a number, true or false") from None
        return json.dumps(value) if isinstance(value, bool | int | float) else str(self.node.value)

    def entry(self, key: str, value: str | None = None) -> Entry:
        """The field's value, or `value`, as an entry for a connector's key."""
        text = (self.text() if value is None else value).strip()
        return Entry(self.file, self.line, key, text, written=self.path)

    def wrong(self, problem: str) -> InputError:
        """Make the error for a field; `problem` must not contain its value."""
        return InputError(f"{self.file}, line {self.line}: {self.path or 'the resource'} {problem}")

    def _part(self, name: str, at: yaml.Node, node: yaml.Node) -> "Field":
        line = int(at.start_mark.line) + 1
        return Field(self.file, f"{self.path}{name}", line, node, self.loader)


def read_resources(file: SourceFile) -> list[Field]:
    """Read every resource of a file: several documents, and the items of a List. Raises InputError
    that names the file, and the line if there is one."""
    try:
        # JSON allows tabs between its parts, YAML only blanks.
        text = file.data.decode("utf-8-sig")
        loader = yaml.SafeLoader(text.replace("\t", " "))
        roots = []
        while loader.check_node() and (node := loader.get_node()) is not None:
            roots.append(Field(file.name, "", int(node.start_mark.line) + 1, node, loader))
        return [one for root in roots for one in _listed(root)]
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is not UTF-8 text, as a resource must be") from None
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{file.name} is not valid YAML{line}: {error.problem}") from None
    except (yaml.YAMLError, RecursionError):
        raise InputError(f"{file.name} is not valid YAML") from None


def kind_of(resource: Field) -> str:
    """The resource's kind, empty if it has none."""
    kind = resource.part("kind")
    return kind.text() if kind is not None else ""


def _listed(root: Field) -> Iterator[Field]:
    """Yield the resource itself, or the items of a List as kubectl writes it."""
    if not isinstance(root.node, yaml.MappingNode):
        return
    items = root.part("items")
    if kind_of(root).endswith("List") and items is not None:
        for one in items.each():
            yield from _listed(one)
    else:
        yield root
