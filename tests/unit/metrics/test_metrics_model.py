"""What a scrape gives of what is known: names, labels, and bounds."""

import operator
import re
from dataclasses import replace

from mirrorlake.metrics.facts import Facts, FlowFacts, FlowInForce, WorkerFacts, waits
from mirrorlake.metrics.model import METRICS, Series, bounded, families
from tests.support.metrics_facts import FACTS, FLOW, SAMPLE


def scraped(facts: Facts, bound: int = 1000) -> dict[str, Series]:
    return {family.metric.name: family.series for family in families(facts, bound)}


def test_names_are_ours_in_base_units() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"mirrorlake(_[a-z0-9]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert not re.search(r"_(ms|mib|kb|minutes)\b", metric.name)
        assert metric.text.endswith(".")


def test_a_process_that_knows_nothing_has_every_metric() -> None:
    assert set(scraped(Facts())) == {metric.name for metric in METRICS}
    for family in families(FACTS, 1000):
        assert all(len(labels) == len(family.metric.labels) for labels in family.series)


def test_records_and_lag_by_partition() -> None:
    values = scraped(FACTS)
    assert values["mirrorlake_produced_records_total"] == {
        ("east->west", "orders", "0"): 3,
        ("east->west", "orders", "1"): 4,
    }
    assert values["mirrorlake_stalled_seconds"]["east->west", "orders", "0"] == 30.0
    idle = replace(SAMPLE, lag_records=0, stalled_since=None)
    flow = replace(FLOW, samples={("orders", 0): idle})
    idle_values = scraped(replace(FACTS, flows={"east->west": flow}))
    assert idle_values["mirrorlake_stalled_seconds"]["east->west", "orders", "0"] == 0.0
    assert values["mirrorlake_open_incidents"] == {("east->west", ""): 0.0}


def test_how_a_flow_stood_that_runs_no_more_is_not_told() -> None:
    """Else its last sample would raise an alert for as long as the process lives."""
    ended = scraped(replace(FACTS, in_force=()))
    assert ended["mirrorlake_produced_records_total"], "counters go on"
    gauges = {metric.name for metric in METRICS if "flow" in metric.labels} - {
        name for name in ended if name.endswith(("_total", "latency_seconds"))
    }
    assert {name for name in gauges if ended[name]} == set()


def test_groups_on_both_sides() -> None:
    at = ("billing", "orders", 0)
    groups = {"source": {at: 11, ("billing", "gone", 0): 1}, "target": {at: 12}}
    facts = replace(FACTS, in_force=(FlowInForce("east->west", groups=groups),))
    assert scraped(facts)["mirrorlake_group_lag_records"] == {
        ("east->west", "source", "billing", "orders", "0"): 4.0,
        ("east->west", "target", "billing", "orders", "0"): 0.0,
    }


def test_partitions_are_added_up_where_there_are_too_many() -> None:
    values = scraped(FACTS, bound=1)
    assert values["mirrorlake_produced_records_total"] == {("east->west", "orders", ""): 7}
    assert values["mirrorlake_lag_records"] == {("east->west", "orders", ""): 10.0}
    assert values["mirrorlake_lag_seconds"] == {("east->west", "orders", ""): 9.0}


def test_topics_are_added_up_next_and_flows_never() -> None:
    many = {("f", f"t{topic}", str(p)): 1 for topic in range(3) for p in range(3)}
    assert bounded(many, 9, operator.add) == many
    assert bounded(many, 8, operator.add) == {("f", f"t{topic}", ""): 3 for topic in range(3)}
    assert bounded(many, 2, operator.add) == {("f", "", ""): 9}
    assert len(bounded({(f"f{n}", "t"): 1 for n in range(5)}, 2, operator.add)) == 5


def test_who_is_ready() -> None:
    assert waits(FACTS) == []
    assert waits(replace(FACTS, phase="starting Spark")) == ["starting: starting Spark"]
    new = replace(FACTS, flows={})
    assert waits(new) == ["flow east->west has not produced anything yet"]
    idle = FlowFacts(samples={("orders", 0): replace(SAMPLE, lag_records=0)}, sampled_at=1.0)
    assert waits(replace(new, flows={"east->west": idle})) == []
    late = FlowFacts(samples={("orders", 0): SAMPLE}, sampled_at=1.0)
    assert len(waits(replace(new, flows={"east->west": late}))) == 1
    stopped = replace(FACTS, workers=(WorkerFacts("flow east->west", "stopped", 1),))
    assert waits(stopped) == ["flow east->west has stopped; mirrorlake status says why"]
    for source, sentences in (("north", []), ("east", ["landing from cluster east has stopped"])):
        worker = WorkerFacts(f"landing from cluster {source}", "stopped", 1)
        found = waits(replace(FACTS, workers=(worker,)))
        assert [one.partition(";")[0] for one in found] == sentences


def test_what_lags_lags_on_where_no_sample_comes() -> None:
    """The thread that samples hangs, or fails: its last word was 2 s."""
    idle = replace(FLOW, samples={("orders", 0): replace(SAMPLE, lag_records=0, lag_seconds=0.0)})
    for now, lag in ((169.0, 2.0), (410.0, 302.0)):
        facts = replace(FACTS, now=now)
        assert scraped(facts)["mirrorlake_lag_seconds"]["east->west", "orders", "0"] == lag
        caught_up = replace(facts, flows={"east->west": idle})
        assert list(scraped(caught_up)["mirrorlake_lag_seconds"].values()) == [0.0]
    rare = replace(FACTS, now=410.0, in_force=(FlowInForce("east->west", quiet_seconds=1800.0),))
    assert scraped(rare)["mirrorlake_lag_seconds"]["east->west", "orders", "0"] == 2.0
