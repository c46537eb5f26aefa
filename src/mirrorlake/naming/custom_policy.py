"""A user's policy: `policy: "package.module:Class"` or `"naming.py:Class"` in the topology file.

A package must be installed. A file is run only because the topology file names it; its folder is
not added to the import path, so that other modules there cannot be slipped in. It is read once per
process.

The class has three methods (`NamingPolicy`). Any error in it is reported in one sentence.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from mirrorlake.errors import TopologyError, first_line
from mirrorlake.naming.policy import NamingPolicy, ReplicationPolicy

_METHODS = ("remote_topic", "source_of", "upstream_topic")


@dataclass(frozen=True)
class CustomPolicy:
    """`own`, of the user's class, as a ReplicationPolicy. Raises TopologyError if it fails."""

    spec: str
    own: NamingPolicy

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Ask the class."""
        answer = self._ask(self.own.remote_topic, source_alias, topic)
        if answer is None:
            raise TopologyError(
                f"policy {self.spec}: remote_topic returned no name for topic {topic!r}; it has to"
            )
        return answer

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """Return None: the class does not say how it treats prefixes."""
        return None

    def source_of(self, topic: str) -> str | None:
        """Ask the class."""
        return self._ask(self.own.source_of, topic)

    def upstream_topic(self, topic: str) -> str | None:
        """Ask the class."""
        return self._ask(self.own.upstream_topic, topic)

    def _ask(self, method: Callable[..., object], *arguments: str) -> str | None:
        call = f"{method.__name__}({', '.join(map(repr, arguments))})"
        try:
            answer = method(*arguments)
        except Exception as error:
            raise TopologyError(
                f"policy {self.spec}: {call} failed with {_kind_and_line(error)}; fix the class"
            ) from error
        if answer is not None and not isinstance(answer, str):
            kind = type(answer).__name__
            raise TopologyError(
                f"policy {self.spec}: {call} returned a value of type {kind}, not a string or None"
            )
        return answer


def load_policy(
    spec: str, separator: str, aliases: frozenset[str], source_alias: str, directory: Path | None
) -> ReplicationPolicy:
    """Load `package.module:Class` from the installed packages, or `file.py:Class`, relative to
    `directory` (of the topology file).

    Raises TopologyError, one sentence, if the module, class or a method is missing, or code fails.
    """
    module_name, _, class_name = spec.rpartition(":")
    path = policy_file(spec, directory)
    module = _import(spec, module_name) if path is None else _loaded(spec, path).module
    made_by = getattr(module, class_name, None)
    if not inspect.isclass(made_by):
        raise TopologyError(
            f"policy {spec}: module {module.__name__} has no class {class_name}; correct the name"
        )
    own = _construct(
        spec, made_by, {"separator": separator, "aliases": aliases, "source_alias": source_alias}
    )
    missing = [name for name in _METHODS if not callable(getattr(own, name, None))]
    if missing:
        raise TopologyError(
            f"policy {spec}: class {class_name} has no method {' and '.join(missing)}; a policy "
            "needs remote_topic, source_of and upstream_topic"
        )
    return CustomPolicy(spec, own)


def policy_file(spec: str, directory: Path | None) -> Path | None:
    """The file that a `policy` names; None for a built-in one, or one in a package."""
    place = spec.rpartition(":")[0]
    return Path(directory or ".", Path(place).expanduser()) if place.endswith(".py") else None


def policy_hash(spec: str, directory: Path | None) -> str | None:
    """SHA-256, in hex, of the file that a `policy` names, as this process runs it; None if it names
    no file. Raises TopologyError."""
    path = policy_file(spec, directory)
    return None if path is None else _loaded(spec, path).digest


@dataclass(frozen=True)
class _Loaded:
    """The module of a file, and the hash of the bytes that were run."""

    module: ModuleType
    digest: str


def _loaded(spec: str, path: Path) -> _Loaded:
    try:
        return _run(path)
    except OSError as error:
        raise TopologyError(
            f"policy {spec}: {path} cannot be read ({error.strerror}); correct the path"
        ) from error
    except ModuleNotFoundError as error:
        sentence = f"running {path} failed with {_kind_and_line(error)}; install what it needs"
        raise TopologyError(f"policy {spec}: {sentence}") from error
    except Exception as error:
        raise TopologyError(
            f"policy {spec}: running {path} failed with {_kind_and_line(error)}; fix it"
        ) from error


@cache
def _run(path: Path) -> _Loaded:
    """Read and run a file, once per process, so that names do not change under a running flow."""
    text = path.read_bytes()
    digest = sha256(text).hexdigest()
    module = ModuleType(path.name)
    module.__file__ = str(path)
    exec(compile(text, str(path), "exec"), module.__dict__)  # the topology file asks for it by name
    return _Loaded(module, digest)


def _import(spec: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            sentence = (
                f"importing {module_name} failed with {_kind_and_line(error)}; install what "
                "it needs"
            )
        else:
            sentence = (
                f"there is no module {error.name}; install it, or name a file, as in "
                "naming.py:Class"
            )
        raise TopologyError(f"policy {spec}: {sentence}") from error
    except Exception as error:
        raise TopologyError(
            f"policy {spec}: importing {module_name} failed with {_kind_and_line(error)}; fix it"
        ) from error


def _construct(spec: str, made_by: type, offered: dict[str, Any]) -> Any:
    try:
        parameters = inspect.signature(made_by).parameters.values()
    except ValueError:
        parameters = {}.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    named = {
        parameter.name
        for parameter in parameters
        if parameter.kind is not parameter.POSITIONAL_ONLY
    }
    try:
        return made_by(
            **{name: value for name, value in offered.items() if takes_all or name in named}
        )
    except Exception as error:
        raise TopologyError(
            f"policy {spec}: making it failed with {_kind_and_line(error)}; fix the class"
        ) from error


def _kind_and_line(error: Exception) -> str:
    """Kind and first line of an error's text."""
    kind, line = type(error).__name__, first_line(error)
    return kind if line == kind else f"{kind}: {line}"
