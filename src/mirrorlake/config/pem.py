"""PEM text, as a client's setting holds it."""

import re
import textwrap

_BLOCK = re.compile(
    r"\s*-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?P<body>[^:]*?)-----END (?P=kind)-----\s*"
)


def is_pem(text: str) -> bool:
    """Whether a value is PEM text itself, and not the name of a file."""
    return text.lstrip().startswith("-----BEGIN")


def with_line_breaks(text: str) -> str:
    """PEM text with its lines (RFC 7468), which get lost where a properties file or an environment
    variable holds it in one: Java's clients read that, and OpenSSL does not."""
    return text if "\n" in text.strip() else _BLOCK.sub(_block, text)


def _block(match: re.Match[str]) -> str:
    kind, lines = match["kind"], textwrap.wrap("".join(match["body"].split()), 64)
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])
