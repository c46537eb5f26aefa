"""The stores of `${secret:scope/key}`: a scope on Databricks, a folder or keyring elsewhere.

A store returns None for a secret that it lacks, and raises Unresolved if it refuses to answer. The
first store with a secret counts. No value is kept, logged, or put into an error.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from mirrorlake.config.references import Provider, Unresolved, env_provider, resolve

#: Names the folder of secrets: `$MIRRORLAKE_SECRETS/<scope>/<key>` is a file that holds one value.
FOLDER_VARIABLE = "MIRRORLAKE_SECRETS"


class SecretStore(Protocol):
    """A store of secrets by scope and key."""

    def read(self, scope: str, key: str) -> str | None:
        """The value, or None where there is none. Raises Unresolved."""

    def where(self, scope: str, key: str) -> str:
        """Where this store looks for a secret, for a sentence."""


class FolderSecrets:
    """One file per secret, as Kubernetes and systemd provide them. Only its owner may have rights
    on it, and its group may read it if this process is not the owner: a file that Kubernetes mounts
    is root's, with mode 0440 for the group that `fsGroup` gives the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, scope: str, key: str) -> str | None:
        """The file's text without a last line end. Raises Unresolved if others could read it."""
        if ".." in Path(scope, key).parts or Path(key).is_absolute():
            raise Unresolved(f"a secret lies below {self._folder}, and this name leads out of it")
        path = self._folder / scope / key
        try:
            with path.open(encoding="utf-8") as file:
                there = os.fstat(file.fileno())
                if stat.S_IMODE(there.st_mode) & refused_rights(there.st_uid):
                    raise Unresolved(_too_open(path, there.st_uid))
                return file.read().removesuffix("\n").removesuffix("\r")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise Unresolved(f"{path} cannot be read: {reason}") from None

    def where(self, scope: str, key: str) -> str:
        """The file's path."""
        return f"the file {self._folder / scope / key}"


def refused_rights(owner: int) -> int:
    """The rights that a file with a secret must not give: any, except to its owner; but its group
    may read it if the owner is another user than ours, who alone could change it."""
    read_by_group = 0 if owner == os.geteuid() else stat.S_IRGRP
    return (stat.S_IRWXG | stat.S_IRWXO) & ~read_by_group


def _too_open(path: Path, owner: int) -> str:
    if owner == os.geteuid():
        return f"others than its owner may use {path}; run `chmod 600 {path}`"
    return (
        f"others than its owner and the readers of its group may use {path}; give it the mode 0440 "
        "(in Kubernetes `defaultMode: 0440` and a securityContext with `fsGroup`)"
    )


class KeyringSecrets:
    """The operating system's keyring, by `keyring`; the scope is a service, the key a user."""

    def read(self, scope: str, key: str) -> str | None:
        """The password, or None."""
        secret: str | None = import_module("keyring").get_password(scope, key)
        return secret

    def where(self, scope: str, key: str) -> str:
        """The command that would put it there."""
        return f"the keyring (`keyring set {scope} {key}`)"


class DatabricksSecrets:
    """A secret scope of the workspace in which this runs."""

    def read(self, scope: str, key: str) -> str | None:
        """The secret. What missing ones raise differs by runtime, so each error names the place."""
        try:
            secret: str = import_module("databricks.sdk.runtime").dbutils.secrets.get(
                scope=scope, key=key
            )
        except Exception as error:  # noqa: BLE001 (the workspace's own errors, whose text is not ours to vouch for)
            raise Unresolved(
                f"{self.where(scope, key)} did not give it ({type(error).__name__}); check that it "
                "exists and that this job may read it"
            ) from None
        return secret

    def where(self, scope: str, key: str) -> str:
        """Scope and key."""
        return f"the Databricks secret scope {scope}, key {key},"


def secret_stores(environment: Mapping[str, str]) -> list[SecretStore]:
    """The stores here: the workspace on Databricks; elsewhere the named folder, and the keyring."""
    if "DATABRICKS_RUNTIME_VERSION" in environment:
        return [DatabricksSecrets()]
    stores: list[SecretStore] = []
    if folder := environment.get(FOLDER_VARIABLE):
        stores.append(FolderSecrets(Path(folder)))
    if find_spec("keyring") is not None:
        stores.append(KeyringSecrets())
    return stores


def resolved(text: str) -> str:
    """A text with references replaced by present values; never log it. Raises TopologyError."""
    provide = secret_provider(secret_stores(os.environ))
    return resolve(text, {"env": env_provider(os.environ), "secret": provide})


def secret_provider(stores: Sequence[SecretStore]) -> Provider:
    """Make the provider for `${secret:scope/key}` from stores, asked in order."""

    def provide(name: str) -> str:
        scope, _, key = name.partition("/")
        for store in stores:
            value = store.read(scope, key)
            if value is not None:
                return value
        places = " or ".join(store.where(scope, key) for store in stores)
        raise Unresolved(
            f"put it into {places}"
            if places
            else f"set {FOLDER_VARIABLE} to a folder that holds the file {name}"
        )

    return provide
