"""What a function is called with, which does its work all the same."""

from collections.abc import Callable
from typing import Any


def calls_of(
    owner: object,
    name: str,
    note: Callable[..., object] = lambda *arguments: arguments,
    patch: Callable[[Any, str, Any], None] = setattr,
) -> list[Any]:
    """A list that gets what `note` makes of the arguments of each call of a function of an object,
    or of all objects of a class, from now on; `monkeypatch.setattr` as `patch` ends it with the
    test."""
    real, calls = getattr(owner, name), list[Any]()

    def call(*arguments: Any, **named: Any) -> Any:
        calls.append(note(*arguments))
        return real(*arguments, **named)

    patch(owner, name, call)
    return calls
