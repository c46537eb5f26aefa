"""Notebook 05: source, stage, map and target side by side."""

from collections import Counter

import pyarrow as pa

from mirrorlake.notebook.host import Notebook
from mirrorlake.notebook.inline import plain_rows


def sides(nb: Notebook) -> pa.Table:
    """One row per partition, those with something to say first."""
    return nb.query("audit", flow=nb.flow)


def missing(nb: Notebook) -> pa.Table:
    """What is staged and not on the target, and since when."""
    return nb.query("missing_since", flow=nb.flow)


def not_staged(nb: Notebook) -> pa.Table:
    """What the source had at the newest sample and the stage has not."""
    return nb.packaged("queries", "never_staged", flow=nb.flow)


def proven(nb: Notebook) -> pa.Table:
    """How much of each topic is proven by content, and since when: what `mirrorlake verify` has
    compared."""
    return nb.query("proven", flow=nb.flow)


def differences(nb: Notebook) -> pa.Table:
    """Offsets that differed when they were compared by content, and were not proven since."""
    return nb.query("proven_differences", flow=nb.flow)


def verified(nb: Notebook) -> pa.Table:
    """The newest comparisons by content, range by range."""
    return nb.query("verified", flow=nb.flow)


def proof(nb: Notebook) -> str:
    """What is proven by content, in a sentence."""
    rows = plain_rows(proven(nb))
    compared = [row for row in rows if row["audited_at"] is not None]
    if not compared:
        return f"flow {nb.flow}: nothing was compared by content yet; `mirrorlake verify` does it"
    records, whole = (sum(row[f"{kind}_records"] for row in rows) for kind in ("mapped", "proven"))
    since = [row["proven_since"] for row in compared if row["proven_since"] is not None]
    oldest = f", the oldest proof is of {min(since):%Y-%m-%d %H:%M}" if since else ""
    differing = sum(row["differing_ranges"] for row in compared)
    differs = f"{differing:,} ranges differ" if differing else "no difference"
    return (
        f"flow {nb.flow}: {whole:,} of {records:,} records at the target are proven by content, "
        f"{differs}{oldest}"
    )


def verdict(nb: Notebook) -> str:
    """The audit in a sentence."""
    counts = Counter(sides(nb)["verdict"].to_pylist())
    if not counts:
        return f"flow {nb.flow}: nothing was sampled or staged yet"
    whole = counts.pop("complete", 0)
    others = "; ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return f"flow {nb.flow}: {whole} partitions complete" + (
        f"; {others}" if others else ", and no other"
    )
