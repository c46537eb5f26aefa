"""A topology without secrets, to show to others, and its hash."""

import hashlib
import json
import re
from typing import Any

from mirrorlake.config.topology import Topology

#: Replaces a secret.
HIDDEN = "(hidden)"

# `storage` is of a lake: keys of stores have names beyond counting.
_SECRET_KEY = re.compile(
    r"password|secret|token(?!_endpoint)|jaas|credential|extensions|pem\b|^storage$", re.IGNORECASE
)
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY_OF_URL = re.compile(r"(://[^?#\s]*)[?#].*", re.DOTALL)
_PEM = re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|$)", re.DOTALL)
# Matches `name=value`, and `name: "value"` as in JSON and Python, but no words of a sentence.
_ASSIGNED = re.compile(
    r"""((?:password|secret|token|jaas[.]config|credentials?|pem|key[.]?store[.]key"""
    r"""|(?:access|account|master|sas)_key|key_base64)["']?\s*"""
    r"""(?:=\s*(?![$"'\s])|=\s*(?=["'])|:\s*(?=["'])))("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"']+)""",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\$\{[^{}]*\}")


def redacted(topology: Topology) -> dict[str, Any]:
    """The topology as its file has it, without defaults and secrets; references to secrets stay."""
    document = topology.model_dump(mode="python", by_alias=True, exclude_defaults=True)
    hidden = _redacted(document, False)
    assert isinstance(hidden, dict)
    return hidden


def topology_hash(topology: Topology) -> str:
    """A hash that is equal for equal topologies. It reveals nothing about secrets."""
    text = json.dumps(redacted(topology), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def without_secrets(text: str) -> str:
    """Remove possible secrets from a text of a topology file, such as an address."""
    if "-----BEGIN" in text:
        return HIDDEN
    return _QUERY_OF_URL.sub(rf"\1?{HIDDEN}", _USER_OF_URL.sub(f"{HIDDEN}@", text))


def without_secrets_in_line(text: str) -> str:
    """Remove possible secrets from a log line: users in addresses, values of passwords, keys.

    Our own lines contain no secret; texts of libraries may quote settings and addresses.
    """
    text = _USER_OF_URL.sub(f"{HIDDEN}@", _PEM.sub(HIDDEN, text))
    return _ASSIGNED.sub(rf"\1{HIDDEN}", text)


def _redacted(value: object, secret: bool) -> object:
    """Redact one value of a document; `secret` says that its key names a secret."""
    if isinstance(value, dict):
        return {
            key: _redacted(part, secret or bool(_SECRET_KEY.search(str(key))))
            for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redacted(part, secret) for part in value]
    text = value.get_secret_value() if hasattr(value, "get_secret_value") else value
    secret = secret or text is not value
    if not isinstance(text, str):
        return HIDDEN if secret and text is not None else text
    if secret:
        return text if _REFERENCE.fullmatch(text) else HIDDEN
    return without_secrets(text)
