"""Facts of a flow as metrics are made of them."""

from dataclasses import replace

from mirrorlake.metrics.facts import Facts, FlowFacts, FlowInForce, PartitionSample, Volume
from mirrorlake.metrics.histogram import observed

SAMPLE = PartitionSample(
    5, lag_seconds=2.0, source_end=15, produced_end=10, target_end=10, stalled_since=100.0
)


FLOW = FlowFacts(
    produced={("orders", 0): Volume(3, 30), ("orders", 1): Volume(4, 40)},
    replication={"orders": observed(0.2)},
    batches={"short": 2},
    samples={("orders", 0): SAMPLE, ("orders", 1): replace(SAMPLE, lag_seconds=9.0)},
    sampled_at=110.0,
)


FACTS = Facts({"east->west": FLOW}, in_force=(FlowInForce("east->west"),), now=130.0)
