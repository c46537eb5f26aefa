"""Notebook 05 calls a partition complete only where its newest sample lags behind nothing."""

from pathlib import Path

import mirrorlake
from mirrorlake.notebook import audit, open_notebook
from tests.support.sample_lake import REFUSED_AT, fill

FILE = """
clusters: {east: {bootstrap_servers: "a:1"}, lab: {bootstrap_servers: "b:1"}}
lake: {path: ./lake}
flows: {"east->lab": {topics: [orders]}}
"""


def test_what_a_sample_says_is_missing_is_so_where_the_stage_has_nothing(tmp_path: Path) -> None:
    (tmp_path / "mirrorlake.yml").write_text(FILE, encoding="utf-8")
    fill(mirrorlake.open(tmp_path / "mirrorlake.yml").internals.tables, 1)
    nb = open_notebook({}, flow="")
    nb._widgets |= {"lake": str(tmp_path / "lake"), "flow": REFUSED_AT[0]}
    rows = {(row["topic"], row["partition"]): row for row in nb.rows("audit", flow=nb.flow)}
    refused = rows[REFUSED_AT[1:]]
    assert refused["verdict"] == "not on the target" and refused["not_produced"] > 10_000
    assert "not on the target" in audit.verdict(nb)
