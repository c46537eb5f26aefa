"""Notebook 05: source, stage, map and target side by side."""

from pyspark.sql import DataFrame

from mirrorlake.notebook.host import Notebook


def sides(nb: Notebook) -> DataFrame:
    """One row per partition, those with something to say first."""
    return nb.query("audit", flow=nb.flow)


def missing(nb: Notebook) -> DataFrame:
    """What is staged and not on the target, and since when."""
    return nb.query("missing_since", flow=nb.flow)


def not_staged(nb: Notebook) -> DataFrame:
    """What the source had at the newest sample and the stage has not."""
    return nb.lake.flows[nb.flow].never_staged()


def proven(nb: Notebook) -> DataFrame:
    """How much of each topic is proven by content, and since when: what `mirrorlake verify` has compared."""
    frame = nb.lake.table("proof_status")
    return frame.where(frame["flow"] == nb.flow).orderBy("proven_share", "topic")


def verdict(nb: Notebook) -> str:
    """The audit in a sentence."""
    counts = {row["verdict"]: row["count"] for row in sides(nb).groupBy("verdict").count().collect()}
    if not counts:
        return f"flow {nb.flow}: nothing was sampled or staged yet"
    whole = counts.pop("complete", 0)
    others = "; ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return f"flow {nb.flow}: {whole} partitions complete" + (f"; {others}" if others else ", and no other")
