"""The `security` block of a cluster (docs/security.md, "The security block")."""

import re
import textwrap
from typing import Literal

from pydantic import SecretStr, field_validator, model_validator

from mirrorlake.config.fields import Model, relative_to_file

_LOGIN = ("username", "password")
_TOKEN = ("token_endpoint", "client_id", "client_secret")
_TOKEN_OPTIONS = ("scope", "extensions")
_FILES = ("ca_file", "certificate_file", "key_file", "key_password")
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


class Security(Model):
    """How to connect to a cluster; rendered for librdkafka by `mirrorlake.kafka.config`.

    Files are PEM files, relative to the topology file's folder; a value may also be the PEM text
    itself, or a reference to it. PLAIN and SCRAM take `username` and `password`. OAUTHBEARER takes
    the client credentials that `token_endpoint` (a URL) gives tokens for (KIP-768), with an
    optional `scope` and SASL `extensions` (KIP-342). `verify_hostname: false` accepts a broker's
    certificate whatever host it names.
    """

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = None
    username: str | None = None
    password: SecretStr | None = None
    token_endpoint: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None
    scope: str | None = None
    extensions: dict[str, str] = {}
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: SecretStr | None = None
    verify_hostname: bool = True

    _resolve_files = field_validator("ca_file", "certificate_file", "key_file")(relative_to_file)

    @property
    def sasl(self) -> bool:
        """Whether the client logs in with a SASL mechanism."""
        return self.protocol.startswith("SASL")

    @property
    def encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.protocol.endswith("SSL")

    @property
    def principal(self) -> str:
        """The principal that brokers see, if known, for messages. May contain a reference."""
        if name := self.username or self.client_id:
            return f"the principal {name}"
        return (
            "the principal of certificate_file" if self.certificate_file else "an anonymous client"
        )

    @model_validator(mode="after")
    def _complete(self) -> "Security":
        if self.sasl and self.mechanism is None:
            raise ValueError(f"needs mechanism with protocol {self.protocol}")
        by_token = self.mechanism == "OAUTHBEARER"
        wanted = (_TOKEN if by_token else _LOGIN) if self.sasl else ()
        if missing := [name for name in wanted if not getattr(self, name)]:
            given = f"protocol {self.protocol} and mechanism {self.mechanism}"
            raise ValueError(f"needs {' and '.join(missing)} with {given}")
        if not self.sasl:
            self._refuse_unused(
                ("mechanism", *_LOGIN, *_TOKEN, *_TOKEN_OPTIONS), f"protocol {self.protocol}"
            )
        self._refuse_unused(
            _LOGIN if by_token else (*_TOKEN, *_TOKEN_OPTIONS), f"mechanism {self.mechanism}"
        )
        if not self.encrypted:
            self._refuse_unused(_FILES, f"protocol {self.protocol}")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("needs certificate_file and key_file together")
        return self

    def _refuse_unused(self, names: tuple[str, ...], by: str) -> None:
        if unused := [name for name in names if getattr(self, name)]:
            raise ValueError(f"gives {' and '.join(unused)}, which {by} would never use")
