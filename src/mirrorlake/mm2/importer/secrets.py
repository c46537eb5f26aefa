"""Keeps secret values out of a topology file: each becomes `${env:NAME}`, or `${secret:NAME/KEY}`
if it is in a Kubernetes Secret; the report says what to set or mount."""

import re
from collections.abc import Mapping, Sequence

from mirrorlake.mm2.importer.entries import Entry
from mirrorlake.mm2.importer.report import Report

# Kafka's ConfigTransformer: ${provider:[path:]key}
_REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*):)?([^}:]*)\}")
#: How Strimzi's operator refers to Secrets: ${strimzisecrets:NAMESPACE/NAME:KEY}.
_STRIMZI = "strimzisecrets"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Secrets:
    """Names environment variables for secrets. `providers` is provider name -> Java class."""

    def __init__(self, report: Report, providers: Mapping[str, str]) -> None:
        self._report = report
        self._environment = {
            name for name, kind in providers.items() if kind.endswith("EnvVarConfigProvider")
        } | {"env"}
        self._kubernetes = {
            name
            for name, kind in providers.items()
            if kind.endswith("KubernetesSecretConfigProvider")
        } | {_STRIMZI}
        self._variables: dict[str, str] = {}
        self._mounts: dict[tuple[str, str], dict[str, list[str]]] = {}

    @property
    def variables(self) -> Mapping[str, str]:
        """Each variable to set, with the key of the topology that reads it."""
        return self._variables

    @property
    def mounts(self) -> Mapping[str, Sequence[str]]:
        """Each Secret of Kubernetes to mount, with its keys that the topology reads."""
        return {secret: list(keys) for (_, secret), keys in self._mounts.items()}

    def note_mounts(self) -> None:
        """Report where to mount each Kubernetes Secret, once all are known."""
        for (namespace, secret), keys in self._mounts.items():
            readers = ", ".join(f"{key} for {' and '.join(to)}" for key, to in keys.items())
            where = f"the namespace {namespace}" if namespace else "its own namespace"
            self._report.note(
                f"mount the Secret {secret}, into a pod of {where}, as the folder {secret} below "
                "the one that MIRRORLAKE_SECRETS names (as ops/kubernetes does: defaultMode 0440 "
                f"with fsGroup); read are {readers}"
            )

    def hide(self, entry: Entry, value: str | None, alias: str, to: str) -> str:
        """The reference for the secret `clusters.<alias>.<to>`; `value` is None if unknown."""
        if value is not None and (mounted := self._mounted(entry, value, f"clusters.{alias}.{to}")):
            return mounted
        if value is not None and (kept := self._own(value)):
            self._announce(kept[6:-1], f"clusters.{alias}.{to}", f"as {entry.at} did")
            return kept
        field = to.rpartition(".")[2]
        name = self._free(
            re.sub(r"\W", "_", f"{alias}_{field}", flags=re.ASCII).upper(), f"clusters.{alias}.{to}"
        )
        self._announce(name, f"clusters.{alias}.{to}", self._was(entry, value))
        return f"${{env:{name}}}"

    def show(self, entry: Entry, value: str, alias: str, to: str) -> str:
        """Return a non-secret value as it is, unless it contains a reference to a secret."""
        return self.hide(entry, value, alias, to) if "${" in value else value

    def _own(self, value: str) -> str | None:
        """A reference to an environment variable in mirrorlake's form, if the value is one."""
        match = _REFERENCE.fullmatch(value)
        if match and match[1] in self._environment and _VARIABLE.fullmatch(match[3]):
            return f"${{env:{match[3]}}}"
        return None

    def _mounted(self, entry: Entry, value: str, to: str) -> str | None:
        """References to Kubernetes Secrets in mirrorlake's form, one a line, if the value is
        nothing else. Raises InputError for Secrets of one name in two namespaces."""
        lines = [_REFERENCE.fullmatch(line) for line in value.split("\n")]
        matches = [line for line in lines if line and line[1] in self._kubernetes and line[2]]
        if len(matches) < len(lines):
            return None
        references = []
        for namespace, _, secret, key in ((*line[2].rpartition("/"), line[3]) for line in matches):
            if any(name == secret and there != namespace for there, name in self._mounts):
                raise entry.wrong(
                    f"refers to a Secret {secret} in the namespace {namespace}, and another field "
                    "to one of that name elsewhere; a pod mounts Secrets of its own namespace, so "
                    "import each resource alone"
                )
            readers = self._mounts.setdefault((namespace, secret), {}).setdefault(key, [])
            if to not in readers:
                readers.append(to)
            references.append(f"${{secret:{secret}/{key}}}")
        return "\n".join(references)

    def _was(self, entry: Entry, value: str | None) -> str:
        if value is None:
            return "its value stands in no file that was imported"
        if match := _REFERENCE.fullmatch(value):
            return f"its value is what {match[0]} of {entry.at} stands for"
        return f"its value is in {entry.at}"

    def _announce(self, name: str, to: str, was: str) -> None:
        self._variables[name] = to
        self._report.note(
            f"set the environment variable {name}, which {to} reads, or write a "
            f"${{secret:scope/key}}; {was}"
        )

    def _free(self, name: str, to: str) -> str:
        name = name if not name[0].isdigit() else f"CLUSTER_{name}"
        wanted, count = name, 1
        while self._variables.get(wanted, to) != to:
            count += 1
            wanted = f"{name}_{count}"
        return wanted
