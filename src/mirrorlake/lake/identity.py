"""A lake's identity, eight characters in its names at targets: no two share a transactional id.

It is a property of the table `records`, so it goes wherever the lake goes, whatever the path: a
process that goes on with a lake fences the one that wrote from it before, and knows its positions.
"""

import hashlib
import os

from mirrorlake.errors import LakeError, first_line
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.properties import PROPERTY


def store_identity(lake: Lake) -> str:
    """The identity of a lake that is to be produced from; a lake of an earlier version first gets
    its own stored.

    Such a lake was named by the place of its checkpoints, and its flows have groups and
    transactional ids of that name at their targets. Raises LakeError when the lake was opened to be
    read, or its identity cannot be stored.
    """
    if lake.stored_id:
        return lake.lake_id
    from pyspark.errors import PySparkException  # only storing one needs it

    identity = hashlib.sha256(os.fsencode(lake.checkpoints.resolve())).hexdigest()[:8]
    try:
        lake.retrying(lambda: _store(lake, identity))
    except PySparkException as error:
        raise LakeError(
            f"the identity of the lake at {lake.place} cannot be stored as a property of its table "
            f"records ({first_line(error)}); give this process the right to change the table"
        ) from error
    # what another process stored just before is the lake's
    lake.stored_id = lake.properties("records").get(PROPERTY)
    return lake.lake_id


def _store(lake: Lake, identity: str) -> None:
    if PROPERTY not in lake.properties("records"):
        lake.sql(f"ALTER TABLE records SET TBLPROPERTIES ('{PROPERTY}' = '{identity}')")
