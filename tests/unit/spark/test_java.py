"""Which Java is taken, and what a person reads when there is none."""

import os
import tempfile
from pathlib import Path

import pytest

from mirrorlake.errors import MissingJava
from mirrorlake.spark import java


def fake_java(home: Path, told: str) -> Path:
    """Write a `java` that tells a version on standard error, as the real one does."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{told}\nEND\n", encoding="utf-8")
    command.chmod(0o755)
    return command


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java of this machine; `cat` and `sh` stay."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("mirrorlake.spark.java.shutil.which", lambda _name: None)
    monkeypatch.setattr("mirrorlake.spark.java._HOMEBREW", ())


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19 LTS', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_version_is_read_from_what_java_tells(
    tmp_path: Path, told: str, version: int | None
) -> None:
    assert java.java_version(fake_java(tmp_path / "jdk", told)) == version


def test_java_that_cannot_run_has_no_version(tmp_path: Path) -> None:
    assert java.java_version(tmp_path / "absent") is None


def test_one_that_runs_is_asked_once_until_it_changes(tmp_path: Path) -> None:
    command, calls = fake_java(tmp_path / "jdk", 'java version "17"'), tmp_path / "calls"
    text = command.read_text(encoding="utf-8")
    command.write_text(text.replace("cat", f"echo >> {calls}; cat"), encoding="utf-8")
    os.utime(command, (1, 1))
    assert [java.java_version(command) for _ in range(3)] == [17, 17, 17]
    # Only the version: the folder of the tests may have these digits in its name too.
    newer = command.read_text(encoding="utf-8").replace('version "17"', 'version "21"')
    command.write_text(newer, encoding="utf-8")
    assert [java.java_version(command) for _ in range(3)] == [21, 21, 21]
    assert calls.read_text(encoding="utf-8").count("\n") == 2


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = fake_java(tmp_path / "mine", 'openjdk version "21.0.2"')
    fake_java(tmp_path / "home" / ".jdk" / "jdk-17", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    assert java.find_java() == mine.resolve()


def test_too_old_java_home_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "old", 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    good = fake_java(tmp_path / "home" / ".jdk" / "jdk-17", 'openjdk version "17.0.1"')
    assert java.find_java() == good.resolve()


def test_missing_java_says_what_to_install() -> None:
    with pytest.raises(MissingJava) as raised:
        java.find_java()
    for part in (
        "apt-get install openjdk-17-jre-headless",
        "brew install openjdk@17",
        "pip install install-jdk",
    ):
        assert part in raised.value.message
    assert "\n" not in raised.value.message
    assert "no java in JAVA_HOME or on PATH" in raised.value.message
    assert raised.value.exit_code == 2


def test_only_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", 'openjdk version "11.0.22"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(MissingJava) as raised:
        java.find_java()
    assert f"only {old} (version 11)" in raised.value.message


def test_a_user_without_a_name_has_one_in_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert java.made_up_name() is None and java.nameless_flags() == []
    monkeypatch.setattr("mirrorlake.spark.java.os.getuid", lambda: 4_000_020_001)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert java.made_up_name() == "user-4000020001"
    assert java.nameless_flags() == ["-Duser.name=user-4000020001", f"-Duser.home={tmp_path}"]


@pytest.mark.parametrize("home", ["", "relative", "/dev/null/none"])
def test_a_home_that_cannot_be_used_is_the_folder_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setattr("mirrorlake.spark.java.os.getuid", lambda: 4_000_020_001)
    monkeypatch.setenv("HOME", home)
    assert java.nameless_flags()[1] == f"-Duser.home={tempfile.gettempdir()}"


def test_a_host_whose_name_does_not_resolve_has_an_address_in_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(java.socket, "gethostname", lambda: "127.0.0.1")
    assert java.address_where_the_host_has_none() == {}
    monkeypatch.setattr(java.socket, "gethostname", lambda: "no-such-host.invalid")
    assert java.address_where_the_host_has_none() == {"SPARK_LOCAL_IP": "127.0.0.1"}
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.1")
    assert java.address_where_the_host_has_none() == {}
