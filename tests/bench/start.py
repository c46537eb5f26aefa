"""How long a start's queries on the lake take after a day and after a year of generated history."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mirrorlake.config.lake import Maintenance
from mirrorlake.groups.checkpoint_table import newest_checkpoints
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.maintain import maintain
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.samples import newest_samples
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.landing.generations import decisions_of, generations_of
from mirrorlake.spark.session import local_session
from tests.bench.control import topology_of
from tests.bench.made_up import DAY, FLOW, MAINTAINED, YEAR, History, make_history

#: Its clusters are never contacted.
_TOPOLOGY = topology_of(dict.fromkeys(FLOW.split("->"), "127.0.0.1:1"))
_WARM = History(100, 100, 1, partitions=2)


def measure_starts(directory: Path) -> dict[str, Any]:
    """Time each query of a start, on lakes of a day and a year, with daily `maintain` and without.

    Returns {"day": {what: seconds, ...}, "year": {...}, "year_maintained": {...}, "ratio": ...,
    "ratio_maintained": ..., "maintain_seconds"}; ratios compare the sums to that of the day.
    `maintain_seconds` is the time of one `maintain` after a year of daily ones.
    """
    spark = local_session()
    try:
        # warm up: the session's own start is not the lakes' cost
        _timed(_made(spark, directory / "warm", _WARM))
        document: dict[str, Any] = {"runs": YEAR.runs, "commits": YEAR.commits}
        document["day"] = _timed(_made(spark, directory / "day", DAY))
        maintained = _made(spark, directory / "maintained", MAINTAINED)
        document["year_maintained"] = _timed(maintained)
        document["year"] = _timed(_made(spark, directory / "year", YEAR))
        began = time.monotonic()
        maintain(open_lake(spark, _TOPOLOGY.lake, maintained), _TOPOLOGY, Maintenance())
        document["maintain_seconds"] = round(time.monotonic() - began, 1)
    finally:
        spark.stop()
    base = sum(document["day"].values())
    for ratio, history in (("ratio", "year"), ("ratio_maintained", "year_maintained")):
        document[ratio] = round(sum(document[history].values()) / base, 2)
    return document


def _made(spark: SparkSession, directory: Path, history: History) -> Path:
    """Make a lake with a history, at a path that the session has not seen."""
    template = directory.with_name(f"{directory.name}-new")
    template.mkdir(parents=True)
    make_history(open_lake(spark, _TOPOLOGY.lake, template), history)
    return template.rename(directory)


def _timed(directory: Path) -> dict[str, float]:
    """Time the queries of a start, in its order."""
    spark = local_session()
    seconds: dict[str, float] = {}

    def ask(name: str, question: Callable[[], object]) -> Any:
        began = time.monotonic()
        answer = question()
        seconds[name] = round(time.monotonic() - began, 3)
        return answer

    lake: Lake = ask("open", lambda: open_lake(spark, _TOPOLOGY.lake, directory))
    event_log = EventLog(lake)
    ask("clusters", lambda: lake.query("known_clusters").collect())
    ask("generations", lambda: generations_of(lake, "east"))
    ask(
        "decisions",
        lambda: (
            decisions_of(lake, "east"),
            event_log.incidents.decided(FLOW, lambda _topic: LivingMirror(None, None)),
        ),
    )
    ask("stage", lambda: StageFiles(lake).ends("east"))
    ask("map", LakeMap(lake, FLOW).ends)
    ask("samples", lambda: newest_samples(lake, FLOW))
    ask("checkpoints", lambda: newest_checkpoints(lake, FLOW))
    ask("changes", lambda: event_log.history(FLOW, "acl"))
    return seconds
