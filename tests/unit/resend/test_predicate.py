"""A predicate that may answer otherwise the next time is refused, and what does it is named."""

import pytest

from mirrorlake.errors import InputError
from mirrorlake.resend.predicate import check_predicate


def known(name: str) -> bool:
    return name != "my_udf"


@pytest.mark.parametrize(
    "where",
    [
        "timestamp >= '2026-11-21' AND get_json_object(CAST(value AS STRING), '$.status') = "
        "'FAILED'",
        "offset % 2 = 0 AND key IS NOT NULL",
        "exists(headers, h -> h.key = 'version' AND h.value IS NULL)",
        "key LIKE 'now' OR CAST(value AS STRING) = 'rand()'",
        "unix_timestamp(CAST(value AS STRING)) > 1",
        "xxhash64(key) % 100 < 5 -- a part, the same one each time",
        "timestamp >= TIMESTAMP '2026-11-21 00:00:00'",
    ],
)
def test_what_gives_the_same_answer_again(where: str) -> None:
    check_predicate(where, known)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("offset <", "cannot be read: Required keyword: 'expression' missing. Line 1"),
        ("rand() > 0.5", "rand"),
        ("`rand`() > 0.5", "rand"),
        ("RANDN(1) > 0.5", "randn"),
        ("uuid() = 'a'", "uuid"),
        ("timestamp > now()", "now"),
        ("timestamp > current_timestamp", "current_timestamp"),
        ("timestamp > current_date() - INTERVAL 1 DAY", "current_date"),
        ("timestamp > DATE 'today'", "DATE 'today'"),
        ("timestamp > timestamp' Yesterday '", "TIMESTAMP ' Yesterday '"),
        ("unix_timestamp() > 1", "unix_timestamp()"),
        ("input_file_name() = 'a'", "input_file_name"),
        ("_metadata.file_path = 'a'", "_metadata"),
        ("offset IN (SELECT 1)", "a query"),
        ("EXISTS (SELECT 1)", "a query"),
        ("count(*) > 1", "an aggregate"),
        ("row_number() OVER (ORDER BY offset) = 1", "a window"),
        ("my_udf(value)", "my_udf is no function of Spark's own"),
        ("ai_query('a', value) = 'b'", "ai_query"),
        ("true GROUP BY 1", "nothing more"),
        ("true LIMIT 5", "nothing more"),
        ("true; DROP TABLE records", "nothing more"),
        ("true UNION SELECT 1", "nothing more"),
        ("", "cannot be read"),
        ("offset >", "cannot be read"),
    ],
)
def test_what_does_not(where: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        check_predicate(where, known)
    assert said in str(raised.value) and "\n" not in str(raised.value)
