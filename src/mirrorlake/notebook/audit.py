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


def differences(nb: Notebook) -> DataFrame:
    """What comparisons by content found to differ, and none found whole since."""
    return nb.query("proven_differences", flow=nb.flow)


def verified(nb: Notebook) -> DataFrame:
    """The newest comparisons by content, range by range."""
    return nb.query("verified", flow=nb.flow)


def proof(nb: Notebook) -> str:
    """What is proven by content, in a sentence."""
    rows = proven(nb).collect()
    compared = [row for row in rows if row["audited_at"] is not None]
    if not compared:
        return f"flow {nb.flow}: nothing was compared by content yet; `mirrorlake verify` does it"
    records, whole = sum(row["mapped_records"] for row in rows), sum(row["proven_records"] for row in rows)
    since = [row["proven_since"] for row in compared if row["proven_since"] is not None]
    oldest = f", the oldest proof is of {min(since):%Y-%m-%d %H:%M}" if since else ""
    differing = sum(row["differing_ranges"] for row in compared)
    differs = f"{differing:,} ranges differ" if differing else "no difference"
    return f"flow {nb.flow}: {whole:,} of {records:,} records at the target are proven by content, {differs}{oldest}"


def verdict(nb: Notebook) -> str:
    """The audit in a sentence."""
    counts = {row["verdict"]: row["count"] for row in sides(nb).groupBy("verdict").count().collect()}
    if not counts:
        return f"flow {nb.flow}: nothing was sampled or staged yet"
    whole = counts.pop("complete", 0)
    others = "; ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return f"flow {nb.flow}: {whole} partitions complete" + (f"; {others}" if others else ", and no other")
