"""A flow that could not be brought to its end before groups move is named, whatever the reason."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ClusterUnreachable, MirrorlakeError, ReplicationError
from mirrorlake.failover import drain
from mirrorlake.failover.failover import _drained
from mirrorlake.failover.left_over import left_over
from tests.support.lake_rows import FLOW, write_file


@pytest.mark.parametrize(
    "error",
    [ClusterUnreachable("cluster east does not answer", alias="east"), ReplicationError("lost")],
)
def test_what_ends_a_drain_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: MirrorlakeError
) -> None:
    """A cluster that answered a moment ago may not do so any more: then nothing is known of what it
    has and the target has not."""

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(drain, "drain", fails)
    flow = load_topology(write_file(tmp_path)).flow(FLOW)
    nothing: Any = None
    drained = _drained(nothing, flow)
    assert drained is not None and not drained.complete
    inventory: Any = SimpleNamespace(unreported=[], errors={}, closed={}, lost={})
    left = left_over(SimpleNamespace(origin="east"), inventory, [], [drained])  # type: ignore[arg-type]
    assert left == [f"flow {FLOW} was not drained: {error}"]
