"""A run that has no flow says so: exit code 0 alone would be taken for records that came."""

import json
from pathlib import Path

from tests.support.commands import forked

TEXT = """
clusters:
  east: {bootstrap_servers: "127.0.0.1:1"}
  west: {bootstrap_servers: "127.0.0.1:2"}
lake: {path: ./lake}
tracking: {enabled: false}
flows:
  east->west: {topics: ["a.*"], enabled: false}
"""


def test_a_run_of_disabled_flows_says_that_nothing_was_replicated(tmp_path: Path) -> None:
    (tmp_path / "mirrorlake.yml").write_text(TEXT, encoding="utf-8")
    done = forked(["-c", "mirrorlake.yml", "run", "--once", "--json"], tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout) == {"flows": {}}
    assert "no flow of mirrorlake.yml is enabled, so nothing was replicated" in done.stderr
