"""What a shell offers: names of the file and of the lake, quickly, and nothing else on the line."""

import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
from typer._completion_shared import get_completion_script

from mirrorlake.cli.completion import for_bash, offer_at_the_first_tab
from mirrorlake.cli.main import app
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.library import names_known

NOW = datetime.now(timezone.utc)
BIN = Path(sys.executable).parent
FILE = """
clusters: {{east: {{bootstrap_servers: "a:1"}}, west: {{bootstrap_servers: "b:1"}}}}
lake: {lake}
flows: {{"east->west": {{}}, "east->north": {{}}, "west->east": {{}}}}
"""
#: What a shell must never wait for.
HEAVY = {"confluent_kafka", "pandas", "pydantic_settings", "pyspark", "sqlglot"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a topology file, and a lake that has seen some topics and groups."""
    (tmp_path / "mirrorlake.yml").write_text(FILE.format(lake="{path: ./lake}"))
    tables = PathTables(tmp_path / "lake")
    for table in ("states", "checkpoints", "target_generations"):
        tables.create(table)
    of_topics = [{"cluster": "east", "topic": name, "since": NOW} for name in ("orders", "pay")]
    tables.append("states", rows_of("states", of_topics))
    mirror = {"target_topic": "east.orders", "target_generation": 0, "topic_id": "", "began": []}
    of_target = {"flow": "east->west", "topic": "orders", "begins": "stage", "started_at": NOW}
    tables.append("target_generations", rows_of("target_generations", [{**mirror, **of_target}]))
    for _ in range(2):
        one = {"flow": "east->west", "topic": "orders", "partition": 0, "checkpointed_at": NOW}
        rows = [{**one, "group_id": name} for name in ("billing", "a b's")]
        tables.append("checkpoints", rows_of("checkpoints", rows))
    return tmp_path


def asked(place: Path, *words: str, line: str | None = None) -> str:
    """What bash gets behind some words, the last of which is being typed."""
    environment = {
        **os.environ,
        "_MIRRORLAKE_COMPLETE": "complete_bash",
        "COMP_WORDS": line if line is not None else "\n".join(["mirrorlake", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [str(BIN / "mirrorlake")],
        env=environment,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not done.stderr
    return done.stdout


def test_names_of_the_file_and_of_the_lake(place: Path) -> None:
    config = place / "mirrorlake.yml"
    assert names_known.flows(config) == ["east->north", "east->west", "west->east"]
    assert names_known.topics(config) == ["east.orders", "orders", "pay"]
    assert names_known.groups(config) == ["a b's", "billing"]


@pytest.mark.parametrize(
    "lake", ["{catalog: main, schema: s, checkpoints: /c}", "{path: 's3://b'}"]
)
def test_only_a_folder_is_asked(tmp_path: Path, lake: str) -> None:
    config = tmp_path / "mirrorlake.yml"
    config.write_text(FILE.format(lake=lake))
    assert names_known.topics(config) == names_known.groups(config) == []
    assert names_known.flows(config)


def test_bash_gets_words_that_it_can_use(place: Path) -> None:
    assert asked(place, "groups", "--flow", "east") == "east-\\>north\neast-\\>west\n"
    assert asked(place, "translate", "--topic", "").split() == ["east.orders", "orders", "pay"]
    assert asked(place, "groups", "--group", "") == "a\\ b\\'s\nbilling\n"
    assert "status" in asked(place, "stat")


def test_what_stands_in_quotes_needs_no_more(place: Path) -> None:
    line = "mirrorlake\ngroups\n--flow\n'east->w"
    assert asked(place, "groups", "--flow", "x", line=line) == "east->west\n"
    assert for_bash("a b", "mirrorlake\n--group\n") == "a\\ b"


def test_another_file_is_named(place: Path) -> None:
    (place / "other.yml").write_text(FILE.format(lake="{path: ./lake}").replace("north", "south"))
    assert "south" in asked(place, "-c", "other.yml", "run", "--flow", "east")


@pytest.mark.parametrize(
    "content",
    [
        None,
        "[",
        *(
            pytest.param(
                content,
                marks=pytest.mark.wide("test_where_there_is_nothing_to_know_nothing_is_offered"),
            )
            for content in ("", "flows: 3", "lake: {path: 3}\nflows: {}")
        ),
    ],
)
def test_where_there_is_nothing_to_know_nothing_is_offered(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "mirrorlake.yml").write_text(content)
    for option in ("--flow", "--topic"):
        assert asked(tmp_path, "translate", option, "").strip() == ""


def test_a_log_that_is_torn_is_passed_over(place: Path) -> None:
    for path in (place / "lake" / "states" / "_delta_log").iterdir():
        path.write_text("{")
    assert asked(place, "translate", "--topic", "").strip() == ""


SCRIPT = f"""
import sys
from pathlib import Path
from mirrorlake.cli.main import app
from mirrorlake.library import names_known
file = Path("mirrorlake.yml")
assert names_known.topics(file) and names_known.groups(file) and names_known.flows(file)
assert not {HEAVY} & sys.modules.keys(), {HEAVY} & sys.modules.keys()
"""


def test_a_name_costs_little_to_find(place: Path) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=place, check=True, timeout=60)


IN_BASH = """
source "$HOME/.bash_completions/mirrorlake.sh"
complete -p mirrorlake
COMP_WORDS=(mirrorlake groups --group bil) COMP_CWORD=3
_mirrorlake_completion mirrorlake
printf '%s\\n' "${COMPREPLY[@]}"
"""


def test_it_is_installed_for_bash(place: Path) -> None:
    environment = {**os.environ, "HOME": str(place), "PATH": f"{BIN}:{os.environ['PATH']}"}
    for command in ("mirrorlake --install-completion; exit $?", IN_BASH):
        done = subprocess.run(
            ["bash", "-c", command], env=environment, cwd=place, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert "mirrorlake.sh" in (place / ".bashrc").read_text()
    assert done.stdout.splitlines()[-1] == "billing"


def test_the_script_for_zsh_offers_something_at_once() -> None:
    """A typer with another script is seen here; what zsh does is in
    `test_completion_in_shells.py`."""
    assert app.info.help, "which has it installed"
    script = get_completion_script(prog_name="mirrorlake", complete_var="X", shell="zsh")
    last = '[[ $funcstack[1] != _mirrorlake ]] || _mirrorlake_completion "$@"'
    assert script.splitlines()[-2:] == ["compdef _mirrorlake_completion mirrorlake", last]
    offer_at_the_first_tab()
    again = get_completion_script(prog_name="mirrorlake", complete_var="X", shell="zsh")
    assert again == script
