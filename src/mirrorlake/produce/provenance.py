"""Provenance: a header for every hop that names the cluster a record came from, so that it is never
mirrored in a loop.

With identity names a topic's name does not say where its records come from, and MirrorMaker 2 has
no protection there at all (docs/mm2.md, "Which topics are mirrored"). The header holds the *cluster
id*, since an alias may change.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.produce.counted import PlannedRows

HEADER = "mirrorlake-provenance"


@dataclass(frozen=True)
class Provenance:
    """The cluster ids of a flow's ends. `strip` (the last hop) takes headers off, and adds none."""

    source_id: str
    target_id: str
    strip: bool = False

    @property
    def added(self) -> tuple[str, bytes] | None:
        """The header that each record gets behind its own."""
        return None if self.strip else (HEADER, self.source_id.encode())

    @property
    def removed(self) -> str | None:
        """The name of the headers that are dropped from each record."""
        return HEADER if self.strip else None


def without_echoes(rows: PlannedRows, provenance: Provenance | None) -> PlannedRows:
    """Leave out the records that have been on the target already."""
    if provenance is None:
        yield from rows
        return
    for plan, chunk in rows:
        headers = chunk.column("headers")
        # most chunks have few rows, none of them marked: a check is all that they cost
        if _is_any_marked(headers):
            chunk = chunk.filter(pa.array(~came_from(headers, provenance.target_id)))
        if chunk.num_rows:
            yield plan, chunk


def _is_any_marked(headers: pa.Array) -> bool:
    """Whether one of the rows has a header of provenance."""
    if headers.null_count == len(headers):
        return False
    return bool(pc.any(pc.equal(headers.flatten().field("key"), HEADER)).as_py())


def came_from(headers: pa.Array, cluster_id: str) -> np.ndarray:
    """For each row, whether a header, its name text or bytes, has this cluster as origin."""
    pairs, ours = pc.list_flatten(headers), {"key": HEADER.encode(), "value": cluster_id.encode()}
    columns = {name: pc.struct_field(pairs, name) for name in ours}
    marked = pc.and_(
        *(pc.equal(columns[name], pa.scalar(ours[name]).cast(columns[name].type)) for name in ours)
    )
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(counts)), counts)
    own = owners[marked.fill_null(False).to_numpy(zero_copy_only=False)]
    marks: np.ndarray = np.bincount(own, minlength=len(counts)) > 0
    return marks


def may_be_of(
    headers: Collection[tuple[str | None, bytes | None]],
    provenance: Provenance | None,
    mark: tuple[str, bytes] | None,
) -> bool:
    """Whether a flow with this provenance and mark may have written a record at the target. True if
    its headers are unknown, as `kafka.log.Log` may have it."""
    if (None, None) in headers:
        return True
    if mark is not None and mark not in headers:
        return False
    if provenance is None or provenance.strip:
        return True
    return (HEADER, provenance.source_id.encode()) in headers
