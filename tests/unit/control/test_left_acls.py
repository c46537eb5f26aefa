"""ACLs of an earlier policy wait for a decision also while a cluster does not report its ACLs: what
was not looked at is neither over nor done."""

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import acl_sync
from mirrorlake.control.acl_plan import AclChange
from mirrorlake.control.acl_reports import LEFT
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin_acls import NoAcls
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.run.control_loop import ControlLoop
from mirrorlake.run.resolve import Wanted, resolve
from mirrorlake.testing import MemoryCluster
from tests.support.acls import acl
from tests.support.lake_rows import FLOW, no_session, opened, write_file

MADE = acl("east.t")
REFUSED, NONE = NoAcls(False, "DESCRIBE on the cluster is not allowed"), NoAcls(True, "none")


class Bench:
    """A flow whose policy is `identity` now, that made an ACL under `default`; `answers` is what
    the clusters report."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, frozenset[Acl] | NoAcls] = {
            "east": frozenset({acl("t")}),
            "west": frozenset({MADE, acl("t")}),
        }
        self.taken: list[Acl] = []
        monkeypatch.setattr(
            acl_sync, "describe_topic_acls", lambda cluster: self.answers[cluster.alias]
        )
        monkeypatch.setattr(acl_sync, "delete_acls", self._delete)
        file = write_file(directory, flows={FLOW: {"topics": ["t"], "policy": "identity"}})
        self.lake, _ = opened(no_session, file)
        clusters: Any = {alias: MemoryCluster(alias, {"t": [0]}) for alias in self.answers}
        self.connections = Connections(load_topology(file), clusters)
        self.log = EventLog(self.lake)
        self.log.record(FLOW, [AclChange("create", MADE).row(None, "default")])
        self.begin_anew()

    def begin_anew(self) -> None:
        """As another process does."""
        flow = self.connections.topology.flow(FLOW)
        acls = AclSync(flow, self.connections, self.log, remote_topic=str)
        kept_alike = SimpleNamespace(sync_acls=acls.sync)
        worker = SimpleNamespace(targets=SimpleNamespace(acls=acls, kept_alike=kept_alike))
        self._control: Any = SimpleNamespace(
            flow=flow, _event_log=self.log, _acls_left=None, _flow_worker=worker
        )

    def _delete(self, _cluster: object, acls: list[Acl]) -> dict[Acl, None]:
        self.taken += acls
        return dict.fromkeys(acls)

    def turn(self) -> set[str]:
        """One turn of control; returns the kinds of the incidents that are open then."""
        with suppress(ReplicationError):  # of what is not reported
            ControlLoop._sync_acls(self._control)
        return self.log.incidents.open_kinds(FLOW)

    def decide(self) -> None:
        resolve(Deployment.opened(self.lake, self.connections), Wanted(kind=LEFT), "revoke")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path, monkeypatch)
    assert made.turn() == {LEFT}
    return made


@pytest.mark.parametrize("alias", ["east", "west"])
@pytest.mark.parametrize("anew", [False, True])
def test_what_was_not_looked_at_is_not_over(bench: Bench, alias: str, anew: bool) -> None:
    """The right to ask was revoked: the incident closed, as if it had come through."""
    bench.answers[alias] = REFUSED
    if anew:
        bench.begin_anew()
    assert bench.turn() == {LEFT}


def test_where_there_are_no_acls_any_more_nothing_waits(bench: Bench) -> None:
    bench.answers["west"] = NONE
    assert bench.turn() == set()


def test_what_could_not_be_taken_away_is_decided_again(bench: Bench) -> None:
    """It counted as revoked, and whoever read the mirrors went on to."""
    known, bench.answers["west"] = bench.answers["west"], REFUSED
    with pytest.raises(ReplicationError, match="cluster west does not report its ACLs"):
        bench.decide()
    assert (bench.taken, bench.turn()) == ([], {LEFT})
    bench.answers["west"] = known
    bench.decide()
    assert (bench.taken, bench.log.incidents.open_kinds(FLOW)) == ([MADE], set())
