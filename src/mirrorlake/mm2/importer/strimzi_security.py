"""Turns the security of a KafkaMirrorMaker2's cluster into Kafka client settings, with references
to Secrets, as Strimzi's operator writes them into connectors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from mirrorlake.mm2.importer.entries import Entry
from mirrorlake.mm2.importer.resource import Field

SECURITY_FIELDS = ("tls", "authentication")
_JAAS = (
    'org.apache.kafka.common.security.{module} required username="{user}" password="{password}";'
)
#: Types of authentication with a password: mechanism and login module.
_PASSWORDS = {
    "plain": ("PLAIN", "plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", "scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", "scram.ScramLoginModule"),
}
#: Fields of the type oauth, which v1 dropped, and Kafka's own settings for them (KIP-1139).
_TOKENS = {
    "tokenEndpointUri": "sasl.oauthbearer.token.endpoint.url",
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_NO_TOKEN_FIELD = "mirrorlake asks for a token by a client's id and secret, and has no such setting"
_TOKEN_CA = "the token endpoint's certificate is checked against the system's authorities"
#: The key of the CA certificate in the Secrets that Strimzi makes for its clusters.
_CA = "ca.crt"
_PATTERN = (
    "a pattern cannot be referred to: {taken}; write ${{secret:{secret}/KEY}} into ca_file for "
    "each other key that is needed, one a line"
)


@dataclass
class Secured:
    """`entries` are client settings; `same` are fields with the meaning of an entry; `refused` are
    fields without a counterpart, with the reason."""

    entries: list[Entry] = field(default_factory=list)
    same: list[tuple[Field, Entry]] = field(default_factory=list)
    refused: list[tuple[Field, str]] = field(default_factory=list)


def security_entries(cluster: Field, namespace: str) -> Secured:
    """Read a cluster's `tls` and `authentication`. Raises InputError for what Strimzi refuses."""
    return _Security(cluster, namespace).read()


class _Security:
    def __init__(self, cluster: Field, namespace: str) -> None:
        self._namespace, self._read = namespace, Secured()
        self._tls, self._login = cluster.part("tls"), cluster.part("authentication")

    def read(self) -> Secured:
        sasl = self._authentication(self._login) if self._login is not None else False
        protocol = f"{'SASL_' * sasl}{'PLAINTEXT' if self._tls is None else 'SSL'}"
        says = self._tls or (self._login.part("type") if sasl and self._login else None)
        if says is not None:
            self._add(says, "security.protocol", protocol)
        trusted = self._tls.part("trustedCertificates") if self._tls is not None else None
        if trusted is not None:
            certificates = [text for one in trusted.each() for text in self._certificate(one)]
            if certificates:
                self._add(trusted, "ssl.truststore.certificates", "\n".join(certificates))
                self._add(trusted, "ssl.truststore.type", "PEM")
        for part in self._tls.parts().values() if self._tls is not None else ():
            if not part.path.endswith(".trustedCertificates"):
                self._read.refused.append((part, "Strimzi has no such field here"))
        return self._read

    def _authentication(self, login: Field) -> bool:
        """Read the login; return whether it is by SASL."""
        kind = login.needed("type")
        if kind.text() == "tls":
            self._certificate_and_key(login, kind)
        elif kind.text() in _PASSWORDS:
            self._password(login, kind)
        elif kind.text() == "oauth":
            self._token(login, kind)
        elif kind.text() == "custom":
            return self._custom(login, kind)
        else:
            # the topology is refused for an unknown mechanism; without one there would be no login
            self._add(kind, "sasl.mechanism", kind.text())
            self._others(login, why="mirrorlake does not know this type of login")
        return kind.text() != "tls"

    def _certificate_and_key(self, login: Field, kind: Field) -> None:
        pair = login.needed("certificateAndKey")
        for name, key in (("certificate", "certificate.chain"), ("key", "key")):
            self._add(pair, f"ssl.keystore.{key}", self._secret(pair, name))
        self._read.same.append((kind, self._add(pair, "ssl.keystore.type", "PEM")))
        self._others(login, "certificateAndKey")

    def _password(self, login: Field, kind: Field) -> None:
        mechanism, module = _PASSWORDS[kind.text()]
        user, secret = login.needed("username"), login.needed("passwordSecret")
        name = user.text().replace("\\", "\\\\").replace('"', '\\"')
        jaas = _JAAS.format(module=module, user=name, password=self._secret(secret, "password"))
        self._add(kind, "sasl.mechanism", mechanism)
        self._read.same.append((user, self._add(secret, "sasl.jaas.config", jaas)))
        self._others(login, "username", "passwordSecret")

    def _token(self, login: Field, kind: Field) -> None:
        self._add(kind, "sasl.mechanism", "OAUTHBEARER")
        for name, key in _TOKENS.items():
            part = login.part(name)
            if part is not None:
                secret = self._secret(part, "key") if name == "clientSecret" else part.text()
                self._add(part, key, secret)
        self._others(login, *_TOKENS, why=_NO_TOKEN_FIELD)

    def _custom(self, login: Field, kind: Field) -> bool:
        sasl, config = login.part("sasl"), login.part("config")
        given = config.parts() if config is not None else {}
        entries = [self._add(part, key, part.text()) for key, part in given.items()]
        by_sasl = sasl is not None and sasl.text() == "true"
        for part in (kind, sasl):
            if part is not None and entries:
                self._read.same.append((part, entries[0]))
            elif part is not None:
                self._read.refused.append((part, "it comes without a config"))
        self._others(login, "sasl", "config")
        return by_sasl

    def _certificate(self, one: Field) -> Iterator[str]:
        """References to a trusted certificate; a pattern that matches the usual key means it."""
        secret = one.needed("secretName").text()
        pattern, name = one.part("pattern"), one.part("certificate")
        if pattern is not None and set("*?[{") & set(pattern.text()):
            taken = fnmatchcase(_CA, pattern.text())
            what = f"{_CA} of the Secret {secret} is read" if taken else "nothing of it is read"
            self._read.refused.append((pattern, _PATTERN.format(taken=what, secret=secret)))
            if taken:
                yield self._reference(secret, _CA)
        elif (named := name or pattern) is not None:
            yield self._reference(secret, named.text())
        else:
            raise one.wrong("has neither certificate nor pattern, one of which Strimzi asks for")

    def _secret(self, part: Field, name: str) -> str:
        return self._reference(part.needed("secretName").text(), part.needed(name).text())

    def _reference(self, secret: str, key: str) -> str:
        """A reference as Strimzi's operator writes it, which `Secrets` parses."""
        return f"${{strimzisecrets:{self._namespace}/{secret}:{key}}}"

    def _add(self, part: Field, key: str, value: str) -> Entry:
        entry = part.entry(key, value)
        self._read.entries.append(entry)
        return entry

    def _others(self, login: Field, *known: str, why: str = "") -> None:
        for name, part in login.parts().items():
            if name not in (*known, "type"):
                reason = _TOKEN_CA if name == "tlsTrustedCertificates" else why
                self._read.refused.append((part, reason or "Strimzi has no such field here"))
