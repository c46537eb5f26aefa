"""Cores and memory for a load, what a plan says of them, and the page that shows the figures."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.config.lake import Lake
from mirrorlake.config.topology import ResolvedFlow, load_topology
from mirrorlake.landing.land import SESSION_TRIGGER_SECONDS
from mirrorlake.library.capacity import (
    BATCHES_PER_SECOND,
    HEADROOM,
    UTILISATION,
    Load,
    cores_of_records,
    memory_mib,
    needs,
    sentence,
)
from mirrorlake.library.capacity_figures import FIGURES, KINDS, LakeKind
from mirrorlake.library.planning import kind_of, needs_of
from tests.support.docs_scripts import DOCS, docs_script
from tests.support.lake_rows import write_file

LOADS = st.builds(
    Load,
    flows=st.integers(1, 50),
    sources=st.just(1),
    partitions=st.integers(0, 50_000),
    positions=st.integers(0, 50_000),
    records_per_second=st.one_of(st.none(), st.floats(0, 1e6)),
    bytes_per_second=st.one_of(st.none(), st.floats(0, 1e9)),
)


def figure(name: str, kind: LakeKind = "folder") -> float:
    return FIGURES[name].values[kind]


def test_each_figure_is_of_each_kind_and_says_where_it_is_from() -> None:
    for name, known in FIGURES.items():
        assert known.values.keys() == set(KINDS), name
        assert all(value > 0 for value in known.values.values()), name
        assert known.source and all(known.estimated.values()), name
        assert "folder" not in known.estimated or known.source == "not measured yet", name


def test_a_load_is_the_sum_of_its_parts() -> None:
    load = Load(
        flows=2, partitions=500, positions=2_000, records_per_second=1e5, bytes_per_second=1e8
    )
    busy = figure("idle_cores") + figure("flow_cores") + figure("partitions_cores") / 2
    busy += 2 * figure("positions_cores")
    busy += figure("batches_cores") + figure("flow_batches_cores")
    busy += figure("record_cpu") / 10 + figure("gigabyte_cpu") / 10
    found = needs(load, "folder")
    assert busy / UTILISATION <= found.cores < busy / UTILISATION + 0.1
    memory = memory_mib(load, "folder") * HEADROOM / 1024
    assert memory <= found.memory_gib < memory + 0.1


def test_few_records_make_few_batches() -> None:
    """One in ten seconds is next to no work; ten a second are as many batches as there may be."""
    rest, slow, steady, unknown = (
        needs(Load(records_per_second=rate, bytes_per_second=None), "catalog").cores
        for rate in (0.0, 0.1, 10.0, None)
    )
    assert rest <= slow < steady == unknown


def test_where_batches_are_rarer_fewer_records_fill_them() -> None:
    """At one record a second a catalog has as many batches as it ever has, and a folder has not."""
    for kind, steady in (("catalog", True), ("folder", False)):
        one, many = (
            needs(Load(records_per_second=rate, bytes_per_second=rate), kind).cores
            for rate in (1.0, 10.0)
        )
        assert (one == many) is steady
    assert BATCHES_PER_SECOND["catalog"] == pytest.approx(1 / SESSION_TRIGGER_SECONDS, abs=0.05)


def test_no_flow_needs_nothing() -> None:
    found = needs(Load(flows=0, sources=0), "folder")
    assert (found.cores, found.cores_at_rest, found.memory_gib) == (0.0, 0.0, 0.0)


@given(LOADS, st.sampled_from(KINDS))
def test_more_never_needs_less(load: Load, kind: LakeKind) -> None:
    found = needs(load, kind)
    more = needs(
        Load(
            load.flows + 1,
            load.sources,
            load.partitions + 100,
            load.positions + 100,
            load.records_per_second,
            load.bytes_per_second,
        ),
        kind,
    )
    assert 0 < found.cores_at_rest <= found.cores + 0.1
    assert more.cores >= found.cores or load.records_per_second is not None
    assert more.cores_at_rest >= found.cores_at_rest and more.memory_gib >= found.memory_gib
    assert found.cores_per_1000_records > 0


def test_records_of_one_kilobyte_are_taken_where_no_size_is_known() -> None:
    assert needs(Load(records_per_second=2e5), "folder") != needs(Load(), "folder")
    each = needs(Load(), "folder").cores_per_1000_records
    assert each == pytest.approx(cores_of_records(1e3, 1.024e6, "folder") / UTILISATION, abs=1e-3)


def test_it_is_said_in_a_sentence() -> None:
    known = sentence(needs(Load(records_per_second=1_000, bytes_per_second=2e5), "folder"))
    assert (
        known.startswith("this needs about ") and " GiB for 1,000 records/s, and for each " in known
    )
    unknown = sentence(needs(Load(), "folder"))
    assert "once records come all the time" in unknown and "no rate is known yet" in unknown


def plans(*flows: str, unasked: str | None = None) -> list[dict[str, Any]]:
    totals = {"partitions": 30, "partitions_refused": 10}
    groups = {"positions": 700}
    return [
        {"flow": flow, "unasked": unasked, "totals": totals, "groups": groups} for flow in flows
    ]


def flows_of(directory: Path) -> list[ResolvedFlow]:
    flows: dict[str, Any] = {"east->west": {}, "east->north": {}, "west->east": {"paused": True}}
    return load_topology(write_file(directory, flows=flows)).active_flows()


def test_a_plan_counts_what_runs(tmp_path: Path) -> None:
    flows = flows_of(tmp_path)
    busiest = [
        {"flow": "east->west", "records_per_second": 800.0, "bytes_per_second": 80_000.0},
        {"flow": "west->east", "records_per_second": 9e9, "bytes_per_second": 9e9},
        {"flow": "replay:1:east->west", "records_per_second": 9e9, "bytes_per_second": 9e9},
    ]
    planned = plans(*(flow.name for flow in flows))
    expected = Load(
        flows=2,
        sources=1,
        partitions=40,
        positions=1_400,
        records_per_second=800.0,
        bytes_per_second=80_000.0,
    )
    found = needs_of(planned, flows, busiest, "folder")
    assert found == needs(expected, "folder") != needs(replace(expected, positions=0), "folder")
    unknown = needs_of(planned, flows, busiest[1:], "folder")
    assert unknown is not None and unknown.records_per_second is None


def test_a_plan_of_a_silent_cluster_says_nothing_of_needs(tmp_path: Path) -> None:
    flows = flows_of(tmp_path)
    assert needs_of(plans(flows[0].name, unasked="it is away"), flows[:1], (), "folder") is None


@pytest.mark.parametrize(
    ("lake", "kind"),
    [
        ({"path": "./lake"}, "folder"),
        ({"path": "./lake", "catalog": "main", "schema": "mirror"}, "folder"),
        ({"path": "s3://bucket/lake"}, "store"),
        ({"catalog": "main", "schema": "mirror", "checkpoints": "/Volumes/x"}, "catalog"),
    ],
)
def test_where_a_lake_lies(lake: dict[str, str], kind: str) -> None:
    assert kind_of(Lake.model_validate(lake)) == kind


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return docs_script("make_capacity")


def test_the_page_is_up_to_date(maker: ModuleType) -> None:
    text = (DOCS / "capacity.md").read_text(encoding="utf-8")
    assert text == maker.page(text), "run `make tables`"


def test_a_table_without_a_place_is_an_error(maker: ModuleType) -> None:
    with pytest.raises(ValueError, match="has no place for the table examples"):
        maker.page("# Capacity\n")
