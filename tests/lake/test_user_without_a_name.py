"""A user without a name, as Kubernetes runs containers, has a session with Delta."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mirrorlake.spark.jars import cache_folder

UID = "20001"
PROGRAM = """
import os, sys
from mirrorlake.spark.session import local_session
settings = {"spark.sql.warehouse.dir": sys.argv[1] + "/made"}
session = local_session("2", short=True, settings=settings)
table = f"delta.`{sys.argv[1]}/table`"
session.sql(f"CREATE TABLE {table} (a INT) USING DELTA")
session.sql(f"INSERT INTO {table} VALUES (7)")
sys.stdout.write(f"{session.table(table).collect()[0].a} {os.getuid()}")
session.stop()
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None,
    reason="needs root and setpriv, to become a user without a name",
)
def test_a_session_writes_a_table() -> None:
    # Hadoop asks who may enter each folder above a table: pytest's are its user's alone.
    with TemporaryDirectory(dir="/var/tmp") as made:
        Path(made).chmod(0o777)
        _writes_a_table(made)


def _writes_a_table(folder: str) -> None:
    # Folders of root's may be closed to others; what is tested is the name.
    capabilities = "+dac_override,+dac_read_search"
    user = ["setpriv", "--reuid", UID, "--regid", UID, "--clear-groups"]
    user += ["--inh-caps", capabilities, "--ambient-caps", capabilities]
    command = [*user, sys.executable, "-c", PROGRAM, folder]
    settings = {"HOME": folder, "MIRRORLAKE_CACHE": str(cache_folder().parent)}
    settings |= {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith(f"7 {UID}")
