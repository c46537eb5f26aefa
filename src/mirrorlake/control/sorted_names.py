"""Names by what they begin with. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence


class SortedNames:
    """Names, of which those that begin with a text stand together: it takes no look at the
    others."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(names)

    def below(self, prefix: str) -> Sequence[str]:
        """Those that begin with a prefix, in order."""
        first = bisect_left(self._names, prefix)
        end = bisect_left(self._names, True, lo=first, key=lambda name: not name.startswith(prefix))
        return self._names[first:end]


class Prefixes:
    """Prefixes, asked for those that a name begins with: it looks up as many as there are different
    lengths."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._prefixes = frozenset(prefixes)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def of(self, name: str) -> list[str]:
        """Those that a name begins with, the shortest first."""
        begins = (name[:length] for length in self._lengths if length <= len(name))
        return [prefix for prefix in begins if prefix in self._prefixes]
