"""Where secrets come from, and that whoever cannot give one says so in a sentence without it."""

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from mirrorlake.config.references import Unresolved, resolve
from mirrorlake.errors import TopologyError
from mirrorlake.kafka.secrets import (
    DatabricksSecrets,
    FolderSecrets,
    KeyringSecrets,
    SecretStore,
    secret_provider,
    secret_stores,
)


def put(folder: Path, name: str, text: str, mode: int = 0o600) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def module(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    made = ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)


@pytest.mark.parametrize(
    ("text", "value"),
    [("pw", "pw"), ("pw\n", "pw"), ("pw\r\n", "pw"), (" p w \n\n", " p w \n"), ("", "")],
)
def test_a_file_holds_a_secret(tmp_path: Path, text: str, value: str) -> None:
    put(tmp_path, "kafka/west", text)
    assert FolderSecrets(tmp_path).read("kafka", "west") == value


def test_a_key_may_have_folders_and_a_file_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path, "..data/west", "pw")
    (tmp_path / "kafka" / "eu").mkdir(parents=True)
    (tmp_path / "kafka" / "eu" / "west").symlink_to(tmp_path / "..data" / "west")
    assert FolderSecrets(tmp_path).read("kafka", "eu/west") == "pw"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o644])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = put(tmp_path, "kafka/west", "hunter2", mode)
    with pytest.raises(Unresolved, match=f"chmod 600 {path}") as caught:
        FolderSecrets(tmp_path).read("kafka", "west")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o440, 0o400, 0o640])
def test_a_secret_that_kubernetes_mounts_is_read(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of root's behind two links, which the group of the process may read."""
    put(tmp_path, "kafka/..2026_11_27/west", "pw", mode)
    (tmp_path / "kafka" / "..data").symlink_to("..2026_11_27")
    (tmp_path / "kafka" / "west").symlink_to("..data/west")
    owner = os.geteuid()
    monkeypatch.setattr("mirrorlake.kafka.secrets.os.geteuid", lambda: owner + 20001)
    assert FolderSecrets(tmp_path).read("kafka", "west") == "pw"


@pytest.mark.parametrize("mode", [0o444, 0o460, 0o450, 0o644])
def test_a_mounted_secret_that_others_may_use_says_what_helps_there(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "kafka/west", "hunter2", mode)
    owner = os.geteuid()
    monkeypatch.setattr("mirrorlake.kafka.secrets.os.geteuid", lambda: owner + 20001)
    with pytest.raises(Unresolved, match="`defaultMode: 0440`"):
        FolderSecrets(tmp_path).read("kafka", "west")


@pytest.mark.parametrize(
    ("scope", "key"), [("..", "x"), ("kafka", "../../x"), ("kafka", "/etc/passwd")]
)
def test_a_name_that_leads_out_is_refused(tmp_path: Path, scope: str, key: str) -> None:
    put(tmp_path, "x", "hunter2")
    with pytest.raises(Unresolved, match="leads out of it"):
        FolderSecrets(tmp_path / "secrets").read(scope, key)


def test_what_is_no_file_is_missing_or_refused(tmp_path: Path) -> None:
    put(tmp_path, "kafka/west", "x")
    assert FolderSecrets(tmp_path).read("kafka", "none") is None
    assert FolderSecrets(tmp_path).read("kafka", "west/deeper") is None
    assert FolderSecrets(tmp_path / "none").read("kafka", "west") is None
    with pytest.raises(Unresolved, match="cannot be read: Is a directory"):
        FolderSecrets(tmp_path.parent).read(tmp_path.name, "kafka")
    (tmp_path / "kafka" / "west").write_bytes(b"\xff")
    with pytest.raises(Unresolved, match="not UTF-8"):
        FolderSecrets(tmp_path).read("kafka", "west")


def test_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    module(
        monkeypatch,
        "keyring",
        get_password=lambda scope, key: {("kafka", "west"): "pw"}.get((scope, key)),
    )
    assert KeyringSecrets().read("kafka", "west") == "pw"
    assert KeyringSecrets().read("kafka", "none") is None


def test_a_databricks_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(scope: str, key: str) -> str:
        if key != "west":
            raise RuntimeError("hunter2")
        return "pw"

    module(
        monkeypatch,
        "databricks.sdk.runtime",
        dbutils=SimpleNamespace(secrets=SimpleNamespace(get=get)),
    )
    for name in ("databricks", "databricks.sdk"):
        module(monkeypatch, name)
    assert DatabricksSecrets().read("kafka", "west") == "pw"
    with pytest.raises(Unresolved, match="scope kafka, key none, did not give it") as caught:
        DatabricksSecrets().read("kafka", "none")
    assert "hunter2" not in str(caught.value)


def test_each_place_has_its_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kinds(**environment: str) -> list[str]:
        return [type(store).__name__ for store in secret_stores(environment)]

    monkeypatch.setattr("mirrorlake.kafka.secrets.find_spec", lambda name: None)
    assert kinds() == []
    assert kinds(MIRRORLAKE_SECRETS=str(tmp_path)) == ["FolderSecrets"]
    monkeypatch.setattr("mirrorlake.kafka.secrets.find_spec", lambda name: name)
    assert kinds(MIRRORLAKE_SECRETS=str(tmp_path)) == ["FolderSecrets", "KeyringSecrets"]
    assert kinds(MIRRORLAKE_SECRETS=str(tmp_path), DATABRICKS_RUNTIME_VERSION="17.3") == [
        "DatabricksSecrets"
    ]


def ask(stores: list[SecretStore], reference: str = "${secret:kafka/west}") -> str:
    return resolve(reference, {"secret": secret_provider(stores)})


def test_the_first_store_that_has_it_gives_it(tmp_path: Path) -> None:
    put(tmp_path, "b/kafka/west", "second")
    stores: list[SecretStore] = [FolderSecrets(tmp_path / "a"), FolderSecrets(tmp_path / "b")]
    assert ask(stores) == "second"
    put(tmp_path, "a/kafka/west", "first")
    assert ask(stores) == "first"


def test_a_missing_secret_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TopologyError) as caught:
        ask([FolderSecrets(tmp_path), KeyringSecrets.__new__(_Empty)])
    assert caught.value.message == (
        "${secret:kafka/west} has no value: put it into the file "
        f"{tmp_path}/kafka/west or the keyring (`keyring set kafka west`)"
    )
    with pytest.raises(
        TopologyError, match="has no value: set MIRRORLAKE_SECRETS to a folder that holds the file"
    ):
        ask([])


class _Empty(KeyringSecrets):
    def read(self, scope: str, key: str) -> str | None:
        return None
