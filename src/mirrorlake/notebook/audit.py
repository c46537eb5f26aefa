"""Notebook 05: source, stage, map and target side by side."""

from collections import Counter

from mirrorlake.notebook.host import Notebook
from mirrorlake.notebook.inline import plain_rows

#: The verdict of a partition that is the same on all sides.
WHOLE = "complete"


def proof(nb: Notebook) -> str:
    """How much is proven by content, in a sentence."""
    rows = nb.rows("proven", flow=nb.flow)
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
    """The audit in a sentence, with the time of the oldest sample behind it."""
    rows = nb.rows("audit", flow=nb.flow)
    verdicts = {(row["topic"], row["partition"]): row["verdict"] for row in rows}
    for row in plain_rows(nb.packaged("queries", "never_staged", flow=nb.flow)):
        key = row["topic"], row["partition"]  # one that cannot be read may be in no other row
        if verdicts.get(key, WHOLE) == WHOLE:
            verdicts[key] = "not staged"
    counts = Counter(verdicts.values())
    if not counts:
        return f"flow {nb.flow}: nothing was sampled or staged yet"
    whole = counts.pop(WHOLE, 0)
    others = "; ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    sampled = [row["sampled_at"] for row in rows if row["sampled_at"] is not None]
    as_of = f"; as of {min(sampled):%Y-%m-%d %H:%M}" if sampled else ""
    more = f"; {others}" if others else ", and no other"
    return f"flow {nb.flow}: {whole} partitions complete{more}{as_of}"
