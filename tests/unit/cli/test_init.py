"""`mirrorlake init` at a terminal and without one."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirrorlake.cli import init as module
from mirrorlake.cli.main import app
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError, TopologyError

BOTH = ["--source", "a:1", "--target", "b:1", "--untried"]


def run(directory: Path, *words: str, answers: str = "") -> str:
    config = ["-c", str(directory / "mirrorlake.yml")]
    done = CliRunner().invoke(app, [*config, "init", *words], input=answers, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_what_no_option_says_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_at_a_terminal", lambda: True)
    output = run(tmp_path, "--untried", answers="a:1\n\nb:1\n\n\n")
    assert "A broker to mirror from" in output and "run    # do it" in output
    text = (tmp_path / "mirrorlake.yml").read_text(encoding="utf-8")
    assert "bootstrap_servers: a:1" in text and "- .*" in text


def test_without_a_terminal_the_missing_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--topics is not given, and there is no terminal"):
        run(tmp_path, *BOTH)
    assert not (tmp_path / "mirrorlake.yml").exists()


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mirrorlake.yml").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"mirrorlake.yml exists; name another file with -o"):
        run(tmp_path, *BOTH, "--topics", ".*")
    assert (tmp_path / "mirrorlake.yml").read_text(encoding="utf-8") == "mine"
    other = tmp_path / "other.yml"
    assert f"-c {other} plan" in run(tmp_path, *BOTH, "--topics", "x", "-o", str(other))


def test_a_login_is_asked_for_and_its_password_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_at_a_terminal", lambda: True)
    of_source = "a:1\nsasl_ssl\neast.pem\n\nmirror\n\n"
    of_target = "b:1\nSSL\n\n"
    output = run(tmp_path, "--untried", answers=f"{of_source}{of_target}.*\n")
    clusters = load_topology(tmp_path / "mirrorlake.yml").clusters
    there, back = (clusters[alias].security for alias in ("source", "target"))
    assert there is not None and back is not None
    assert (there.protocol, there.mechanism, there.username) == (
        "SASL_SSL",
        "SCRAM-SHA-512",
        "mirror",
    )
    assert there.password is not None
    assert there.password.get_secret_value() == "${env:SOURCE_PASSWORD}"
    assert there.ca_file == str(tmp_path / "east.pem")
    assert back.protocol == "SSL"
    assert "export SOURCE_PASSWORD=" in output


def test_options_say_how_clusters_are_reached(tmp_path: Path) -> None:
    keys = "protocol=SASL_SSL mechanism=PLAIN username=u password=${secret:kafka/west}".split()
    words = [word for key in keys for word in ("--target-security", key)]
    run(tmp_path, *BOTH, "--topics", ".*", *words)
    clusters = load_topology(tmp_path / "mirrorlake.yml").clusters
    assert clusters["source"].security is None
    there = clusters["target"].security
    assert there is not None and there.password is not None
    assert there.password.get_secret_value() == "${secret:kafka/west}"


@pytest.mark.parametrize(
    "given",
    [
        "password=hunter2",
        "client_secret=hunter2",
        "password=x${env:A}hunter2",
        "password=hunter2=",
        "key_file=-----BEGIN PRIVATE KEY-----hunter2",
    ],
)
def test_a_secret_in_clear_is_written_nowhere(tmp_path: Path, given: str) -> None:
    with pytest.raises(InputError, match="give a reference") as raised:
        run(tmp_path, *BOTH, "--topics", ".*", "--source-security", given)
    assert "hunter2" not in str(raised.value)
    assert not (tmp_path / "mirrorlake.yml").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [("protocol", "KEY=VALUE"), ("=x", "KEY=VALUE"), ("passwort=x", "did you mean password")],
)
def test_what_is_no_key_of_a_security_block(tmp_path: Path, given: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(tmp_path, *BOTH, "--topics", ".*", "--source-security", given)


def test_a_block_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="mechanism"):
        run(tmp_path, *BOTH, "--topics", ".*", "--source-security", "protocol=SASL_SSL")
    assert not (tmp_path / "mirrorlake.yml").exists()
