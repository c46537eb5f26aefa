"""A topology as it may be shown to others: without secrets, and its hash."""

import hashlib
import json
import re
from typing import Any

from mirrorlake.config.topology import Topology

#: What stands where a secret was.
HIDDEN = "(hidden)"

_SECRET_KEY = re.compile(
    r"password|secret|token(?!_endpoint)|jaas|credential|extensions|pem\b", re.IGNORECASE
)
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY_OF_URL = re.compile(r"(://[^?#\s]*)[?#].*", re.DOTALL)
_PEM = re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|$)", re.DOTALL)
# `name=value`, and `name: "value"` as JSON and Python write it; the words of a sentence are no
# value.
_ASSIGNED = re.compile(
    r"""((?:password|secret|token|jaas[.]config|credentials?|pem|key[.]?store[.]key)["']?\s*"""
    r"""(?:=\s*(?![$"'\s])|=\s*(?=["'])|:\s*(?=["'])))("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"']+)""",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\$\{[^{}]*\}")


def redacted(topology: Topology) -> dict[str, Any]:
    """The topology as its file says it, without defaults and without secrets; references to secrets
    stay."""
    document = topology.model_dump(mode="python", by_alias=True, exclude_defaults=True)
    hidden = _redacted(document, False)
    assert isinstance(hidden, dict)
    return hidden


def topology_hash(topology: Topology) -> str:
    """A hash that is the same for topologies that say the same. It tells nothing about secrets."""
    text = json.dumps(redacted(topology), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def without_secrets(text: str) -> str:
    """A text of a topology file, such as an address, without what in it may be a secret."""
    if "-----BEGIN" in text:
        return HIDDEN
    return _QUERY_OF_URL.sub(rf"\1?{HIDDEN}", _USER_OF_URL.sub(f"{HIDDEN}@", text))


def without_secrets_in_line(text: str) -> str:
    """A line of a log without what in it may be a secret: users of addresses, values of passwords
    and the like, keys.

    No line is written with a secret in it; this is for texts of libraries, which quote settings and
    addresses.
    """
    text = _USER_OF_URL.sub(f"{HIDDEN}@", _PEM.sub(HIDDEN, text))
    return _ASSIGNED.sub(rf"\1{HIDDEN}", text)


def _redacted(value: object, secret: bool) -> object:
    """One value of a document; `secret` where its key says that it holds one."""
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
