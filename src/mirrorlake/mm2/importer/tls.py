"""Turns TLS settings of Java clients into PEM files. librdkafka reads no Java key stores; the
report gives the command to convert one."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from mirrorlake.config.security import is_pem, with_line_breaks
from mirrorlake.mm2.importer.entries import Entry
from mirrorlake.mm2.importer.report import Report
from mirrorlake.mm2.importer.secrets import Secrets

_NOT_NEEDED = {
    "ssl.protocol": "both of mirrorlake's clients agree with the broker on the newest TLS",
    "ssl.enabled.protocols": "both of mirrorlake's clients agree with the broker on the newest TLS",
    "ssl.keymanager.algorithm": "it names a part of Java",
    "ssl.trustmanager.algorithm": "it names a part of Java",
    "ssl.secure.random.implementation": "it names a part of Java",
    "ssl.provider": "it names a part of Java",
}
_NOT_SUPPORTED = {
    "ssl.cipher.suites": (
        "it lists Java's names of ciphers; the broker decides which ones are allowed"
    ),
    "ssl.engine.factory.class": "it is a Java class",
}


def read_tls(
    alias: str, settings: Mapping[str, Entry], secrets: Secrets, report: Report
) -> dict[str, Any]:
    """Return the TLS fields of `clusters.<alias>.security`, and report every `ssl.*` setting."""
    return _Tls(alias, dict(settings), secrets, report).fields()


class _Tls:
    def __init__(
        self, alias: str, settings: dict[str, Entry], secrets: Secrets, report: Report
    ) -> None:
        self._alias, self._settings, self._secrets, self._report = alias, settings, secrets, report

    def fields(self) -> dict[str, Any]:
        fields = {**self._truststore(), **self._keystore(), **self._host_names()}
        for name, entry in self._settings.items():
            if name in _NOT_NEEDED or not entry.value:
                self._report.skip(entry, _NOT_NEEDED.get(name, "it is empty"))
            else:
                why = "mirrorlake's security block has no such setting"
                self._report.refuse(entry, _NOT_SUPPORTED.get(name, why))
        return fields

    def _truststore(self) -> dict[str, Any]:
        kind, store = self._kind("truststore"), self._take("ssl.truststore.location")
        text = self._take("ssl.truststore.certificates")
        password = self._take("ssl.truststore.password")
        if password is not None:
            self._report.skip(password, "certificates in a PEM file need no password")
        entry = text or store
        if entry is None:
            return {}
        to = f"clusters.{self._alias}.security.ca_file"
        if text is None and kind != "PEM":
            file = f"{_file_name(self._alias)}-ca.pem"
            path = shlex.quote(entry.value)
            command = f"keytool -list -rfc -storetype {kind} -keystore {path} > {file}"
            self._convert(entry, kind, to, file, command)
            return {"ca_file": file}
        self._report.carry(entry, to)
        return {"ca_file": self._path(entry, "ca_file")}

    def _keystore(self) -> dict[str, Any]:
        kind, store = self._kind("keystore"), self._take("ssl.keystore.location")
        chain, key = self._take("ssl.keystore.certificate.chain"), self._take("ssl.keystore.key")
        store_password = self._take("ssl.keystore.password")
        key_password = self._take("ssl.key.password")
        base = f"clusters.{self._alias}.security"
        if store is not None and kind != "PEM":
            for entry in (store_password, key_password):
                if entry is not None:
                    why = (
                        "the command that converts the key store asks for it; the PEM file has none"
                    )
                    self._report.skip(entry, why)
            file = f"{_file_name(self._alias)}-client.pem"
            to = f"{base}.certificate_file and key_file"
            self._convert(store, kind, to, file, _keystore_command(kind, store.value, file))
            return {"certificate_file": file, "key_file": file}
        if store_password is not None:
            self._report.skip(
                store_password, "a PEM file has no password but that of its key, ssl.key.password"
            )
        fields: dict[str, Any] = {}
        if store is not None:
            fields = {name: self._path(store, name) for name in ("certificate_file", "key_file")}
            self._report.carry(store, f"{base}.certificate_file")
            self._report.carry(store, f"{base}.key_file")
        elif chain is not None and key is not None:
            fields["certificate_file"] = self._path(chain, "certificate_file")
            fields["key_file"] = self._secrets.hide(
                key, key.value, self._alias, "security.key_file"
            )
            self._report.carry(chain, f"{base}.certificate_file")
            self._report.carry(key, f"{base}.key_file")
        else:
            why = "Kafka itself uses certificate chain, key and its password only together"
            for entry in filter(None, (chain, key, key_password)):
                self._report.skip(entry, why)
            return {}
        if key_password is not None:
            fields["key_password"] = self._secrets.hide(
                key_password, key_password.value, self._alias, "security.key_password"
            )
            self._report.carry(key_password, f"{base}.key_password")
        return fields

    def _host_names(self) -> dict[str, Any]:
        entry = self._take("ssl.endpoint.identification.algorithm")
        if entry is None:
            return {}
        if entry.value:
            self._report.skip(entry, "mirrorlake checks the names in certificates by default")
            return {}
        self._report.carry(entry, f"clusters.{self._alias}.security.verify_hostname")
        return {"verify_hostname": False}

    def _kind(self, store: str) -> str:
        entry = self._take(f"ssl.{store}.type")
        kind = entry.value.upper() if entry and entry.value else "JKS"  # Kafka's default
        if entry is not None:
            self._report.skip(entry, "all files of a security block are PEM files")
        return kind

    def _take(self, name: str) -> Entry | None:
        return self._settings.pop(name, None)

    def _path(self, entry: Entry, field: str) -> str:
        value = with_line_breaks(entry.value) if is_pem(entry.value) else entry.value
        if not value.startswith(("/", "-----BEGIN", "${")) and not re.match(r"[A-Za-z]:", value):
            self._report.note(
                f"{entry.at} is a relative path: MirrorMaker looks below the folder it was started "
                "in, mirrorlake beside the topology file"
            )
        return self._secrets.show(entry, value, self._alias, f"security.{field}")

    def _convert(self, entry: Entry, kind: str, to: str, file: str, command: str) -> None:
        self._report.note(f"{file} has to be made beside the topology file: {command}")
        self._report.refuse(
            entry,
            f"librdkafka reads PEM files, not {kind}; {to} names {file}, which this makes beside "
            f"the topology file: {command}",
        )


def _file_name(alias: str) -> str:
    return re.sub(r"[^\w-]", "_", alias)


def _keystore_command(kind: str, path: str, file: str) -> str:
    if kind == "PKCS12":
        return f"openssl pkcs12 -nodes -in {shlex.quote(path)} -out {file}"
    convert = (
        f"keytool -importkeystore -srckeystore {shlex.quote(path)} -destkeystore client.p12 "
        "-deststoretype PKCS12"
    )
    return f"{convert} && openssl pkcs12 -nodes -in client.p12 -out {file} && rm client.p12"
