"""Credentials for a lake's place that a workspace lends for an hour: Unity Catalog's temporary path
credentials (https://docs.databricks.com/api/workspace/temporarypathcredentials), for a place below
an external location.

Databricks' SDK knows the workspace and the principal: from the job that runs, from the environment
(`DATABRICKS_HOST`, `DATABRICKS_TOKEN`, …), or from a profile
(https://databricks-sdk-py.readthedocs.io/en/latest/authentication.html).
"""

import logging
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from mirrorlake.errors import first_line
from mirrorlake.extras import needs
from mirrorlake.lake.renewed_options import Lent, NotLent, RenewedOptions

if TYPE_CHECKING:  # whose import takes time
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.service.catalog import GenerateTemporaryPathCredentialResponse

logger = logging.getLogger(__name__)

#: How long a workspace may take to answer, and how long with the SDK's retries, seconds.
_ANSWER_SECONDS, _PATIENCE_SECONDS = 20, 30


def lent_options(url: str, fixed: Mapping[str, str]) -> RenewedOptions:
    """Options with credentials for a URL, shared in this process; `fixed`: the topology file's."""
    return _lent_options(url, tuple(sorted(fixed.items())))


@lru_cache(maxsize=16)
def _lent_options(url: str, fixed: tuple[tuple[str, str], ...]) -> RenewedOptions:
    return RenewedOptions(dict(fixed), lambda: _asked(url), time.time)


def _asked(url: str) -> Lent:
    """Ask the workspace. Raises NotLent."""
    with needs("unity"):
        from databricks.sdk import WorkspaceClient
        from databricks.sdk.core import Config
        from databricks.sdk.errors.base import DatabricksError
    try:
        config = Config(
            http_timeout_seconds=_ANSWER_SECONDS, retry_timeout_seconds=_PATIENCE_SECONDS
        )
        answer = _granted(WorkspaceClient(config=config), url)
    except (DatabricksError, ValueError, OSError, TimeoutError) as error:
        raise NotLent(
            f"Unity Catalog lends no credentials for {url} ({first_line(error)}); grant EXTERNAL "
            "USE LOCATION on its external location and, once tables are registered, EXTERNAL USE "
            "SCHEMA, see that DATABRICKS_HOST and its credentials are there outside of a job, or "
            "leave out lake.credentials"
        ) from error
    return _lent(url, answer)


def _granted(workspace: "WorkspaceClient", url: str) -> "GenerateTemporaryPathCredentialResponse":
    """Credentials to read and write, or only to read where no more is granted."""
    from databricks.sdk.errors import PermissionDenied
    from databricks.sdk.service.catalog import PathOperation

    ask = workspace.temporary_path_credentials.generate_temporary_path_credentials
    try:
        return ask(url, PathOperation.PATH_READ_WRITE)
    except PermissionDenied as denied:
        logger.info("%s is asked for to be read only: %s", url, denied)
        return ask(url, PathOperation.PATH_READ)


def _lent(url: str, answer: "GenerateTemporaryPathCredentialResponse") -> Lent:
    """The lent credentials as delta-rs' options. Raises NotLent for a kind that has none there."""
    options: dict[str, str | None] = {}
    if (aws := answer.aws_temp_credentials) is not None:
        options = {
            "aws_access_key_id": aws.access_key_id,
            "aws_secret_access_key": aws.secret_access_key,
            "aws_session_token": aws.session_token,
        }
    elif (sas := answer.azure_user_delegation_sas) is not None:
        options = {"azure_storage_sas_token": sas.sas_token}
    elif (aad := answer.azure_aad) is not None:
        options = {"azure_storage_token": aad.aad_token}
    known = {name: value for name, value in options.items() if value}
    if not known or answer.expiration_time is None:
        raise NotLent(
            f"Unity Catalog lends credentials for {url} of a kind that cannot be used: those of S3 "
            "and Azure can; leave out lake.credentials, and name the store's own in lake.storage"
        )
    return Lent(known, answer.expiration_time / 1_000)
