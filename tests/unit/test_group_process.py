"""The process that asks about groups: what its death means, and that it ends with its owner."""

import gc
from types import SimpleNamespace

import pytest

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.groups import GroupAdmin


def group_admin(**client: str) -> GroupAdmin:
    admin = SimpleNamespace(alias="east", address="127.0.0.1:1")
    return GroupAdmin(admin, {"bootstrap.servers": "127.0.0.1:1", **client})  # type: ignore[arg-type]


def test_nothing_is_started_for_no_groups() -> None:
    groups = group_admin()
    assert groups.positions([]).positions == {}
    assert groups.move({}) == {}
    assert groups._process is None


def test_a_death_costs_one_call(capfd: pytest.CaptureFixture[str]) -> None:
    groups = group_admin(**{"no.such.setting": "dies of it"})
    for _ in range(2):  # the second call starts another process
        with pytest.raises(ClusterUnreachable, match="cluster east did not answer about consumer groups"):
            groups.positions(["app"])
        assert groups._process is None
    assert "dies of it" not in capfd.readouterr().err


def test_the_process_ends_with_its_owner() -> None:
    groups = group_admin()
    process = groups._running()
    assert process.poll() is None
    del groups
    gc.collect()
    assert process.poll() is not None
