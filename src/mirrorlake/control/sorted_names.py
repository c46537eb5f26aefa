"""Names by what they begin with. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence


class SortedNames:
    """Names in order, so that those with a common prefix are found without a look at the others."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(names)

    def below(self, prefix: str) -> Sequence[str]:
        """The names that begin with a prefix, in order."""
        first = bisect_left(self._names, prefix)
        end = bisect_left(self._names, True, lo=first, key=lambda name: not name.startswith(prefix))
        return self._names[first:end]


class Prefixes:
    """A set of prefixes; finding those of a name takes one lookup for each distinct length."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._prefixes = frozenset(prefixes)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def of(self, name: str) -> list[str]:
        """The prefixes of a name, the shortest first."""
        begins = (name[:length] for length in self._lengths if length <= len(name))
        return [prefix for prefix in begins if prefix in self._prefixes]
