"""The error of a session with a Hive catalog whose metastore does not answer."""

from mirrorlake.errors import LakeError
from mirrorlake.spark.causes import metastore_silence


def metastore_error(error: BaseException) -> LakeError | None:
    """The error for an exception of Spark's that comes from a metastore which does not answer, or
    no longer does; None for any other. Never raises."""
    reason = metastore_silence(error)
    if reason is None:
        return None
    from mirrorlake.spark.session import metastore_address  # Spark is imported: it raised the error

    address = metastore_address()
    return LakeError(
        f"the Hive metastore{f' at {address}' if address else ''} of the Spark session does not "
        f"answer ({reason}); start it, or let hive.metastore.uris in the session's settings "
        "(spark-defaults.conf, hive-site.xml) name one that this machine reaches"
    )
