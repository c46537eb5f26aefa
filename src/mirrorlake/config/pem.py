"""PEM text in client settings."""

import re
import textwrap

_BLOCK = re.compile(
    r"\s*-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?P<body>[^:]*?)-----END (?P=kind)-----\s*"
)


def is_pem(text: str) -> bool:
    """Whether a value is PEM text itself and not a file name."""
    return text.lstrip().startswith("-----BEGIN")


def with_line_breaks(text: str) -> str:
    """Restore the line breaks of PEM text (RFC 7468) that a properties file or an environment
    variable had on one line: Java's clients read that, OpenSSL does not."""
    return text if "\n" in text.strip() else _BLOCK.sub(_block, text)


def _block(match: re.Match[str]) -> str:
    kind, lines = match["kind"], textwrap.wrap("".join(match["body"].split()), 64)
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])
