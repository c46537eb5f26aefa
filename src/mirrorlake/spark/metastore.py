"""Hive's metastore, where a session has its catalog in one and it does not answer."""

from mirrorlake.errors import LakeError
from mirrorlake.spark.causes import metastore_silence


def metastore_error(error: BaseException) -> LakeError | None:
    """The sentence for an error of Spark's that comes of a metastore which does not answer, or does
    not any more; None for any other error. Never raises."""
    reason = metastore_silence(error)
    if reason is None:
        return None
    from mirrorlake.spark.session import metastore_address  # Spark is there: an error came of it

    address = metastore_address()
    return LakeError(
        f"the Hive metastore{f' at {address}' if address else ''} of the Spark session does not "
        f"answer ({reason}); start it, or let hive.metastore.uris in the session's settings "
        "(spark-defaults.conf, hive-site.xml) name one that this machine reaches"
    )
