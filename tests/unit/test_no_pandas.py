"""A command takes no time for pandas, and what is of pandas is made of Arrow's tables all the
same."""

import subprocess
import sys

#: Makes values, reads a folder of files, and makes a frame of pandas last.
_SCRIPT = """
import sys
{first}
import pyarrow as pa
from mirrorlake.no_pandas import leave_pandas_out
leave_pandas_out()
rows = pa.Table.from_pylist([{{"a": 1, "b": "x"}}])
pa.scalar(1)
import pyarrow.dataset
print("pandas" in sys.modules)
print(rows.to_pandas().to_dict("records") == [{{"a": 1, "b": "x"}}])
import pandas
print(pa.array(pandas.Series([1.0, float("nan")]), from_pandas=True).null_count)
"""


def _lines(first: str = "") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(first=first)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.split()


def test_nothing_of_pandas_is_imported_before_it_is_asked_for() -> None:
    assert _lines() == ["False", "True", "1"]


def test_where_pandas_was_there_before_it_stays_known() -> None:
    assert _lines("import pandas") == ["True", "True", "1"]
