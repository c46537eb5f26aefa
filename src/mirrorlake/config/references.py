"""References to values in a topology file: `${env:NAME}` and `${secret:scope/key}`
(docs/security.md, "Secrets").

They are resolved right before a client is made: logs and stored texts keep the reference.
"""

import re
from collections.abc import Callable, Mapping

from mirrorlake.errors import TopologyError

Provider = Callable[[str], str]
"""Gives the value for the text behind the colon; raises Unresolved, with the reason, or KeyError if
it has none."""

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_SHAPES = {"env": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "secret": re.compile(r"[^/]+/.+")}


class Unresolved(Exception):
    """Raised by a provider without a value. Its text completes a sentence and never has a value."""


def env_provider(environment: Mapping[str, str]) -> Provider:
    """Make the provider for `${env:NAME}` from a mapping such as `os.environ`."""

    def provide(name: str) -> str:
        if name not in environment:
            raise Unresolved(f"the environment variable {name} is not set")
        return environment[name]

    return provide


def is_reference(text: str) -> bool:
    """Whether a text is exactly one reference of a known kind."""
    match = _REFERENCE.fullmatch(text)
    return match is not None and _shaped(match[1]) is not None


def variables(text: str) -> set[str]:
    """The environment variables that a text refers to."""
    shaped = map(_shaped, _REFERENCE.findall(text))
    return {name for kind, name in filter(None, shaped) if kind == "env"}


def resolve(text: str, providers: Mapping[str, Provider]) -> str:
    """Replace every reference in `text` by its provider's value; values are not searched for
    references again.

    Raises TopologyError that names the reference, and never a value, for an unknown kind, a
    malformed reference, or one whose provider has no value.
    """
    return _REFERENCE.sub(lambda match: _value(match[0], match[1], providers), text)


def _value(reference: str, body: str, providers: Mapping[str, Provider]) -> str:
    shaped = _shaped(body)
    if shaped is None:
        known = "${env:NAME} or ${secret:scope/key}"
        raise TopologyError(f"{reference} is not a reference that mirrorlake knows; write {known}")
    kind, name = shaped
    if kind not in providers:
        raise TopologyError(f"{reference} cannot be resolved here: nothing provides {kind} values")
    try:
        return providers[kind](name)
    except Unresolved as error:
        raise TopologyError(f"{reference} has no value: {error}") from None
    except Exception:  # noqa: BLE001 (whatever the provider raised may hold the value)
        raise TopologyError(f"{reference} has no value that can be read") from None


def _shaped(body: str) -> tuple[str, str] | None:
    """Kind and name in the body of a reference; None if the kind or form is unknown."""
    kind, _, name = body.partition(":")
    return (kind, name) if kind in _SHAPES and _SHAPES[kind].fullmatch(name) else None
