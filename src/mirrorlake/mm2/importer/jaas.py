"""Reading `sasl.jaas.config`: one login module with its options, as Kafka's JaasConfig reads it."""

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s=;"\']+)|([=;]))', re.DOTALL
)
_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}


@dataclass(frozen=True)
class Login:
    """A login module's class name without its package, and its options, which hold secrets."""

    module: str
    options: dict[str, str] = field(repr=False)


def parse_jaas(text: str) -> Login:
    """Read `package.Module required name="value" …;`; raises ValueError with a reason that quotes
    no value."""
    tokens = _tokens(text.strip())
    while tokens and tokens[-1] == (";", True):
        tokens.pop()
    words = [word for word, _ in tokens]
    if (";", True) in tokens:
        raise ValueError("names more than one login module")
    if len(words) < 2 or words[1].lower() not in _FLAGS:
        raise ValueError('is no JAAS line; write module required name="value" …;')
    options = {}
    for position in range(2, len(tokens), 3):
        part = tokens[position : position + 3]
        if len(part) < 3 or part[1] != ("=", True) or part[0][1] or part[2][1]:
            raise ValueError(
                'is no JAAS line; its options must be name="value" with blanks between them'
            )
        options[part[0][0]] = part[2][0]
    return Login(words[0].rpartition(".")[2], options)


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Cut into words and signs; the flag says that it is a sign (`=` or `;`)."""
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError("is no JAAS line: a quote is not closed")
        double, single, word, sign = match.groups()
        quoted = double if double is not None else single
        if quoted is not None:
            tokens.append(
                (_ESCAPE.sub(lambda escaped: _ESCAPED.get(escaped[1], escaped[1]), quoted), False)
            )
        else:
            tokens.append((sign or word, sign is not None))
        position = match.end()
    return tokens
