"""A cluster's `security` block from Java clients' settings, `sasl.jaas.config` as Kafka has it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from mirrorlake.mm2.importer.entries import Entry
from mirrorlake.mm2.importer.report import Report
from mirrorlake.mm2.importer.secrets import Secrets
from mirrorlake.mm2.importer.tls import read_tls

_TOKEN = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s=;"\']+)|([=;]))', re.DOTALL
)
_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}


@dataclass(frozen=True)
class Login:
    """A login module's class name without its package, and its options, which contain secrets."""

    module: str
    options: dict[str, str] = dataclass_field(repr=False)


def parse_jaas(text: str) -> Login:
    """Read `package.Module required name="value" …;`; raises ValueError that quotes no value."""
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
    """Split into words and signs; the flag marks a sign (`=` or `;`)."""
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


_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}
_MECHANISM, _JAAS = "sasl.mechanism", "sasl.jaas.config"
_CLIENT_HANDLER = "sasl.client.callback.handler.class"
_LOGIN_HANDLER = "sasl.login.callback.handler.class"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
#: The sources of a login in Java clients: options of the login module, and settings since KIP-1139.
_PASSWORD_OPTIONS = {"username": "username", "password": "password"}
_TOKEN_OPTIONS = {"clientId": "client_id", "clientSecret": "client_secret", "scope": "scope"}
_TOKEN_SETTINGS = {
    _ENDPOINT: "token_endpoint",
    "sasl.oauthbearer.client.credentials.client.id": "client_id",
    "sasl.oauthbearer.client.credentials.client.secret": "client_secret",
    "sasl.oauthbearer.scope": "scope",
}
_SECRET = frozenset({"password", "client_secret"})
#: The syntax of mechanism names (RFC 4422).
_NAME = re.compile(r"[A-Z0-9_-]{1,20}")
_LOGIN_REFRESH = "mirrorlake's clients fetch a new token before the old one ends"


class _Impossible(Exception):
    """Raised when mirrorlake does not support a way to log in; the text says why."""


class SecurityReader:
    """Makes the block of one cluster; `settings` are effective entries by the client's names."""

    def __init__(
        self, alias: str, settings: Mapping[str, Entry], secrets: Secrets, report: Report
    ) -> None:
        self._alias, self._settings = alias, dict(settings)
        self._secrets, self._report = secrets, report
        self._to = f"clusters.{alias}.security"
        #: Whether the block has a login. `load_topology` refuses one that has not: leaving the
        #: block out would mean plain text.
        self.is_complete = True

    def block(self) -> dict[str, Any] | None:
        """Return the block, None if none is needed, and report every setting. Raises InputError."""
        if not self._settings:
            return None
        protocol = self._protocol()
        sasl, encrypted = protocol.startswith("SASL"), protocol.endswith("SSL")
        self._skip_unused("" if sasl else "sasl.", "" if encrypted else "ssl.", protocol)
        try:
            login = self._login() if sasl else {}
        except _Impossible as error:
            for entry in self._settings.values():
                self._report.refuse(entry, f"mirrorlake cannot log in this way: {error}")
            self._report.note(
                f"{self._to} does not say how to log in, because {error}; write it before "
                "`mirrorlake plan`, which refuses the file until then"
            )
            self.is_complete = False
            mechanism = self._mechanism()
            known = mechanism if _NAME.fullmatch(mechanism) else "UNKNOWN"
            return {"protocol": protocol, "mechanism": known}
        if "security.protocol" in self._settings:
            self._report.carry(self._settings["security.protocol"], f"{self._to}.protocol")
        given = {name: entry for name, entry in self._settings.items() if name.startswith("ssl.")}
        tls = read_tls(self._alias, given, self._secrets, self._report)
        return {"protocol": protocol, **login, **tls}

    def _protocol(self) -> str:
        entry = self._settings.get("security.protocol")
        if entry is None:
            return "PLAINTEXT"
        if entry.value.upper() not in _PROTOCOLS:
            raise entry.wrong(f"must be one of {', '.join(_PROTOCOLS)}")
        return entry.value.upper()

    def _skip_unused(self, sasl: str, ssl: str, protocol: str) -> None:
        for name in list(self._settings):
            if name.startswith(tuple(prefix for prefix in (sasl, ssl) if prefix)):
                self._report.skip(self._settings.pop(name), f"protocol {protocol} never uses it")

    def _login(self) -> dict[str, Any]:
        """Return mechanism and credentials. Raises _Impossible before anything is reported."""
        given = {name: entry for name, entry in self._settings.items() if name.startswith("sasl.")}
        mechanism = self._mechanism()
        if mechanism not in _MODULES:
            raise _Impossible(f"the mechanism {mechanism} is none of {', '.join(_MODULES)}")
        login = self._jaas(given.get(_JAAS))
        if login is not None and login.module != _MODULES[mechanism]:
            raise _Impossible(f"the login module is not Kafka's own {_MODULES[mechanism]}")
        if given.get(_CLIENT_HANDLER) is not None and given[_CLIENT_HANDLER].value:
            raise _Impossible(f"{_CLIENT_HANDLER} names a Java class")
        by_token = mechanism == "OAUTHBEARER"
        if by_token:
            self._check_token(given)
        self._report.carry(given.pop(_MECHANISM), f"{self._to}.mechanism")
        return {"mechanism": mechanism, **self._credentials(given, login, by_token)}

    def _mechanism(self) -> str:
        """The mechanism of the settings, or Kafka's default."""
        return (
            self._settings[_MECHANISM].value.upper() if _MECHANISM in self._settings else "GSSAPI"
        )

    def _jaas(self, entry: Entry | None) -> Login | None:
        if entry is None or entry.value.startswith("${"):
            return None
        try:
            return parse_jaas(entry.value)
        except ValueError as error:
            raise entry.wrong(str(error)) from None

    def _check_token(self, given: Mapping[str, Entry]) -> None:
        handler = given.get(_LOGIN_HANDLER)
        own = ("OAuthBearerLoginCallbackHandler", "")
        if handler is not None and handler.value.rpartition(".")[2] not in own:
            raise _Impossible(f"{_LOGIN_HANDLER} names a Java class that is not Kafka's own")
        if _ENDPOINT not in given:
            raise _Impossible(f"OAUTHBEARER needs client credentials, and there is no {_ENDPOINT}")

    def _credentials(
        self, given: dict[str, Entry], login: Login | None, by_token: bool
    ) -> dict[str, Any]:
        """A login: a user and password, or client credentials (KIP-768). Raises InputError."""
        jaas = given.pop(_JAAS, None)
        options = dict(login.options) if login else {}
        credentials: dict[str, tuple[Entry, str]] = {}
        for option, field in (_TOKEN_OPTIONS if by_token else _PASSWORD_OPTIONS).items():
            if jaas is not None and option in options:
                credentials[field] = (jaas, options.pop(option))
        for name, field in (_TOKEN_SETTINGS if by_token else {}).items():
            if name in given:
                entry = given.pop(name)
                credentials[field] = (entry, entry.value)
        wanted = (
            ("token_endpoint", "client_id", "client_secret")
            if by_token
            else ("username", "password")
        )
        missing = [field for field in wanted if field not in credentials]
        if missing and login is not None:
            raise (jaas or self._settings[_MECHANISM]).wrong(f"gives no {' and '.join(missing)}")
        fields = {field: self._value(field, *credentials[field]) for field in credentials}
        fields |= {
            field: self._unknown(field, jaas or self._settings[_MECHANISM]) for field in missing
        }
        if jaas is not None:
            self._other_options(jaas, options, fields, by_token)
        self._rest(given, by_token)
        return fields

    def _value(self, field: str, entry: Entry, value: str) -> str:
        self._report.carry(entry, f"{self._to}.{field}")
        keep = self._secrets.hide if field in _SECRET else self._secrets.show
        return keep(entry, value, self._alias, f"security.{field}")

    def _unknown(self, field: str, entry: Entry) -> str:
        """A reference for a value in another file, or in a JAAS line that is a reference itself."""
        if entry.key.endswith(_JAAS):
            self._report.carry(entry, f"{self._to}.{field}")
        return self._secrets.hide(entry, None, self._alias, f"security.{field}")

    def _other_options(
        self, jaas: Entry, options: dict[str, str], fields: dict[str, Any], by_token: bool
    ) -> None:
        prefix = "extension_"
        extensions = {
            name: options.pop(name)
            for name in list(options)
            if by_token and name.startswith(prefix)
        }
        if extensions:
            fields["extensions"] = {
                name.removeprefix(prefix): self._secrets.show(
                    jaas, value, self._alias, f"security.extensions.{name}"
                )
                for name, value in extensions.items()
            }
            self._report.carry(jaas, f"{self._to}.extensions")
        if options:
            self._report.refuse(
                jaas, f"the login module's options {', '.join(options)} have no counterpart"
            )

    def _rest(self, given: Mapping[str, Entry], by_token: bool) -> None:
        for name, entry in given.items():
            if name == _LOGIN_HANDLER and by_token:
                self._report.skip(
                    entry, "mirrorlake's clients ask the token endpoint by a handler of their own"
                )
            elif name.startswith(("sasl.login.refresh.", "sasl.login.retry.")):
                self._report.skip(entry, _LOGIN_REFRESH)
            elif name.startswith("sasl.kerberos."):
                self._report.skip(entry, "the mechanism is not GSSAPI")
            elif not entry.value:
                self._report.skip(entry, "it is empty")
            else:
                self._report.refuse(entry, "mirrorlake's security block has no such setting")
