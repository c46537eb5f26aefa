"""The guarantees, and that progress is offsets, over thousands of schedules (DESIGN.md,
"Guarantees, and where they come from").

In a process of their own: hypothesis also draws constants that it finds in the modules which are
loaded, so that beside other tests one seed would give other schedules than `make chaos` does.
"""

import subprocess
import sys

import pytest

#: As many find each bug that tests/simulation/test_mutations.py plants.
SCHEDULES = "500"
#: As many find many of them.
FEWER = "100"
#: Seconds: a tenth of that on a quiet machine.
LIMIT = 600


@pytest.mark.parametrize(
    "schedules",
    [FEWER, pytest.param(SCHEDULES, marks=pytest.mark.wide("test_no_schedule_breaks_a_law"))],
)
def test_no_schedule_breaks_a_law(pytestconfig: pytest.Config, schedules: str) -> None:
    command = [sys.executable, "-m", "tests.chaos", "--schedules", schedules, "--seed", "1"]
    command += ["--only", "replication"]
    ended = subprocess.run(
        command,
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-5_000:]
    assert f"{schedules} schedules, nothing wrong" in ended.stdout
